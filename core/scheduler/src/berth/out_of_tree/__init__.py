"""Out-of-tree plugins: gRPC sidecars and HTTP extenders."""
