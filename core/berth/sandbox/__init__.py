"""Floor 6: an API server in memory, with fake kubelets, for development on one machine."""
