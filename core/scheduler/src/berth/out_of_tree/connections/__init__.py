"""The connection to one sidecar: what it announced, whether it answers, and the streams that are open."""
