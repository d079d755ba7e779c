"""`berth plugin`: plugins of one process, and of the resources of a namespace."""
