"""Devices that drivers publish, and claims of them (dynamic resource allocation)."""
