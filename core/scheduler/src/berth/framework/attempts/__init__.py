"""One attempt at one pod: its state, its record, what of the CPU it may use, and why no node fits."""
