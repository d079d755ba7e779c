"""Columns over nodes: what they say of themselves, and what their pods hold of them."""
