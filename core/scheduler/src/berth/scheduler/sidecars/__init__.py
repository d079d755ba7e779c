"""Sidecars, as a scheduler meets them: lists, directories, watches, pages."""
