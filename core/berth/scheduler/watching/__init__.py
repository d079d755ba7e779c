"""Which kinds are watched, and when what they told is complete."""
