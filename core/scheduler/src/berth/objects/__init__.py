"""Floor 0: typed API objects, decoded once from bytes, that hold what scheduling reads."""
