"""A trace of each attempt that is sampled, and the exporters it goes to."""
