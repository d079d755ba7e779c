"""Plugins in shadow: asked beside live attempts, without a say in them."""
