"""Many simulations of one input, and how they differ."""
