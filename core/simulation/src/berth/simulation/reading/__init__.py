"""Reads a simulation's input: files, a live cluster, traces, and the timeline."""
