"""The list of sidecars: read, and checked field by field."""
