"""Floor 6: the scheduler on a file of nodes and pods, offline."""
