"""Counts with their noun."""


def pluralize(count: int, noun: str) -> str:
    """The count and the noun in singular or plural: `1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
