"""Counts in words, for people."""


def so_many(count: int, noun: str) -> str:
    """So many of them: `1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
