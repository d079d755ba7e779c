"""How a verb reaches a running scheduler: at its secure port, or through the API server."""
