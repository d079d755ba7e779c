"""The connection to one sidecar: its handshake, its health, and its open streams."""
