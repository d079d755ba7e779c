"""What nodes and pods really use, read once for a plan: by metrics-server, Prometheus, or files."""
