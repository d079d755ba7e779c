"""The scheduler of a simulation as its files say, and its sidecars and extenders."""
