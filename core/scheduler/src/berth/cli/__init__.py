"""Floor 6: the `berth` command."""
