"""Replays a scheduler's recording."""
