"""The lifecycle of a sidecar: attach, replace, reconfigure, detach, and reports of its state."""
