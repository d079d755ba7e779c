"""What plugins are sent of the cluster: every step of the snapshot, and objects of further kinds."""
