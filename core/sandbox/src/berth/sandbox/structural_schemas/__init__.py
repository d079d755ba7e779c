"""Structural schemas of CustomResourceDefinitions, and the CEL rules in them."""
