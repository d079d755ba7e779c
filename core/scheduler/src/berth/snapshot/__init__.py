"""Floor 1: the columns of one instant of the cluster, filled by the cache and read by plugins."""
