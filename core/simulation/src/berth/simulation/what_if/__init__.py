"""Changes of a cluster before or during a simulation, and their messages."""
