"""Custom resources."""

from berth.sandbox.resources import Resource
from berth.sandbox.rest import Rest
from berth.sandbox.store import Entry


class Definitions:
    """Serves what CustomResourceDefinitions define."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def changed(self, resource: Resource, entry: Entry, *, gone: bool = False) -> None:
        """Take note of a written definition."""
