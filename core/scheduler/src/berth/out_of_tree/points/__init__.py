"""The extension points of a sidecar: requests, responses, and the cache of its answers about nodes."""
