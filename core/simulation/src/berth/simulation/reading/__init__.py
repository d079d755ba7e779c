"""What a simulation is given, read: files, a live cluster, traces, and what happens when."""
