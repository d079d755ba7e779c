"""API objects as the watches last showed them, and as they are once the writes under way have landed."""
