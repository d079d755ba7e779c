"""A scheduler's core, run on the cluster in memory, and what came of it."""
