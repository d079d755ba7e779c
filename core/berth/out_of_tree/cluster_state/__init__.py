"""What plugins are told of the cluster: every step of the snapshot, and objects of further kinds."""
