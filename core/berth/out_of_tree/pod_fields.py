"""The parts of a pod that a plugin's verdicts depend on, read from the API server's own bytes.

Paths are JSON pointers (RFC 6901); a part `*` stands for every element of a list.

Source: proto/berth/plugin/v1/identity.proto PodFields.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

Tree = dict[str, Any]
"""What is wanted below a value, by part of the pointer; empty where the value is wanted as a whole."""

EVERY = "*"
_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class PodFields:
    """Reads the same fields from one pod after another."""

    def __init__(self, paths: Iterable[str]) -> None:
        named = frozenset(paths)
        self._nothing = not named
        self._wanted: Tree = {}
        for path in named:
            if not any(path.startswith(f"{other}/") for other in named):
                self._want(path)

    def _want(self, path: str) -> None:
        place = self._wanted
        for part in path.split("/")[1:]:
            place = place.setdefault(part.replace("~1", "/").replace("~0", "~"), {})

    def of(self, pod: bytes) -> Hashable:
        """The fields' values as one value; what is not there counts as absent."""
        return () if self._nothing else _read(self._wanted, pod)


def _read(wanted: Tree, value: bytes) -> Hashable:
    if not wanted:
        return value
    try:
        if value.startswith(b"["):
            return _read_list(wanted, value)
        members = _read_members(value)
    except msgspec.DecodeError:
        return value
    return tuple(
        _read(below, bytes(members[part])) if part in members else None for part, below in wanted.items()
    )


def _read_list(wanted: Tree, value: bytes) -> Hashable:
    elements = [bytes(element) for element in _read_elements(value)]
    found: list[Hashable] = []
    for part, below in wanted.items():
        if part == EVERY:
            found.append(tuple(_read(below, element) for element in elements))
        elif part.isdigit() and int(part) < len(elements):
            found.append(_read(below, elements[int(part)]))
        else:
            found.append(None)
    return tuple(found)
