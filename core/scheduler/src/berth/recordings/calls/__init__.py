"""What passes between the host and a sidecar, recorded while it happens, and read again."""
