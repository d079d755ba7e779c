"""The configuration of the simulated scheduler, and its sidecars and extenders."""
