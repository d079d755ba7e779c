"""Changes of a cluster before or in a simulation, and what is said of them."""
