"""Runs a scheduler's core on the cluster in memory, and collects the outcome."""
