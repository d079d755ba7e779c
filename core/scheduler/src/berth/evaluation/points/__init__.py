"""Runs the plugins of one extension point, from PreFilter to Score."""
