"""Floor 6: the operator that manages schedulers and their plugins."""
