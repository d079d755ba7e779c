"""Floor 6: builders, strategies and plugin checks for tests, ours and plugin authors'."""
