"""The list of plugins in other processes: read, and checked field by field."""
