"""The answer store: what plugins answered, by class of equal pods and row, and what invalidates it."""
