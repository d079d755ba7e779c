"""What the core writes to the API server: pods, pod groups, claims, volumes, events."""
