"""The cluster state that sidecars receive: each change of the snapshot, and objects of further kinds."""
