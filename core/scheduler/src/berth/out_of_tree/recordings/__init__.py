"""What passes between the host and a plugin, written down while it happens."""
