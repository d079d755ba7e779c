"""What happens in a cluster, recorded in files that rotate."""
