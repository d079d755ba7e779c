"""Which kinds are watched, and when what they showed is complete."""
