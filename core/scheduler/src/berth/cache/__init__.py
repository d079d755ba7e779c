"""Floor 1: what the cluster looks like now, with the pods this scheduler has assumed."""
