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
encode = msgspec.json.Encoder().encode
_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


class PodFields:
    """Reads the same fields from one pod after another.

    Pods of the usual shape take one pass: a decoder made for the named fields skips all others, and
    the values are encoded again. A pod of another shape is read field by field.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        named = frozenset(paths)
        self._nothing = not named
        self._wanted: Tree = {}
        for path in named:
            if not any(path.startswith(f"{other}/") for other in named):
                self._want(path)
        shape = _shape(self._wanted)
        self._at_once = None if shape is None else msgspec.json.Decoder(shape).decode

    def _want(self, path: str) -> None:
        place = self._wanted
        for part in path.split("/")[1:]:
            place = place.setdefault(part.replace("~1", "/").replace("~0", "~"), {})

    def of(self, pod: bytes) -> Hashable:
        """The values of the fields, encoded as one; a field that the pod does not have is absent."""
        if self._nothing:
            return ()
        if self._at_once is not None:
            try:
                return encode(self._at_once(pod))
            except msgspec.MsgspecError:
                pass
        return _read(self._wanted, pod)


def _shape(wanted: Tree) -> Any:
    """The type to decode these paths with; None where a path names a single element of a list.

    Absent fields are left out when encoded; null is no value of the type.
    """
    if not wanted:
        return msgspec.Raw
    if EVERY in wanted and len(wanted) == 1:
        element, listed = _shape(wanted[EVERY]), list
        return None if element is None else listed.__class_getitem__(element)
    if EVERY in wanted or any(part.isdigit() for part in wanted):
        return None
    shapes = {part: _shape(below) for part, below in wanted.items()}
    if None in shapes.values():
        return None
    names = {f"part{i}": part for i, part in enumerate(shapes)}
    fields = [(name, shapes[part] | msgspec.UnsetType, msgspec.UNSET) for name, part in names.items()]
    return msgspec.defstruct("Part", fields, rename=names.__getitem__, gc=False)


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
