"""Plugins in other processes, as a scheduler meets them: lists, directories, watches, pages."""
