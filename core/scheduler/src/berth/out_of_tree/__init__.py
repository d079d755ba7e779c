"""Floor 5: plugins outside this process: gRPC sidecars and HTTP extenders."""
