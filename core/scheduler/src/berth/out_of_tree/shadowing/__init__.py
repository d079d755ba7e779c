"""Plugins in shadow mode: called for live attempts, without effect on them."""
