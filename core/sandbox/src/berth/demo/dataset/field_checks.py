"""The fields of a document that a scheduler run depends on, checked before anything is created.

The API server checks objects again, and more; here a mistake gets its file and document number.
"""

import re
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from berth.demo.dataset.documents import Place
from berth.demo.dataset.errors import shown
from berth.demo.dataset.source import Document
from berth.objects.quantity import nanos

QUANTITY = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?", re.ASCII
)
SUBDOMAIN = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII
)
A_MAPPING = "a mapping is expected"
A_STRING = "a string is expected; put it in quotes"
A_QUANTITY = "a quantity such as 500m, 2 or 16Gi is expected"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# Other kinds have other rules (a role may be called system:node), and the server knows them.
SUBDOMAIN_KINDS = ("Namespace", "Node", "Pod")


class Cursor(msgspec.Struct, frozen=True):
    """A value inside a document, which knows the path that leads to it."""

    value: Any
    place: Place
    path: str

    def get(self, key: str, remedy: str = A_MAPPING) -> "Cursor":
        """Step to a field, whose value is None where it is missing."""
        if not isinstance(self.value, dict):
            self.fail(remedy)
        return Cursor(self.value.get(key), self.place, f"{self.path}.{key}".lstrip("."))

    def each(self) -> "list[Cursor]":
        """Step into the entries of a list; a missing list has none."""
        if not isinstance(self.value, list | None):
            self.fail("a list is expected")
        items = enumerate(self.value or ())
        return [Cursor(item, self.place, f"{self.path}[{index}]") for index, item in items]

    def fail(self, remedy: str) -> NoReturn:
        """Raise the error for this value."""
        found = "nothing" if self.value is None else shown(self.value)
        raise self.place.broken(self.path, found, remedy)


def check_object(document: Document, place: Place, prefix: str) -> None:
    """Check what every object has: its type, a name, labels and annotations."""
    root = Cursor(document, place, prefix.rstrip("."))
    _string(root.get("apiVersion"), "say the object's version, such as v1")
    _string(root.get("kind"), "say the object's kind, such as Pod")
    metadata = root.get("metadata")
    if metadata.get("generateName").value is None or document["kind"] == "Node":
        _string(metadata.get("name"), "give the object a name")
        if document["kind"] in SUBDOMAIN_KINDS and not SUBDOMAIN.fullmatch(document["metadata"]["name"]):
            metadata.get("name").fail("use lower-case letters, digits, dashes and dots only")
    if metadata.get("namespace").value is not None:
        _string(metadata.get("namespace"), A_STRING)
    for field in ("labels", "annotations"):
        _string_map(metadata.get(field))


def check_node(document: Document, place: Place, prefix: str) -> None:
    """Check a v1 Node's amounts and taints, and write amounts given as numbers as text."""
    root = Cursor(document, place, prefix.rstrip("."))
    for cursor in (root.get("spec"), root.get("status")):
        if not isinstance(cursor.value, dict | None):
            cursor.fail(A_MAPPING)
    if document.get("status"):
        _quantities(root.get("status").get("capacity"))
        _quantities(root.get("status").get("allocatable"))
    for taint in root.get("spec").get("taints").each() if document.get("spec") else ():
        _string(taint.get("key"), "say the taint's key")
        if taint.get("effect").value not in EFFECTS:
            taint.get("effect").fail(f"use one of {', '.join(EFFECTS)}")


def check_pod(document: Document, place: Place, prefix: str) -> None:
    """Check a v1 Pod's containers, requests and volumes, and write amounts given as numbers as text."""
    spec = Cursor(document, place, prefix.rstrip(".")).get("spec")
    containers = spec.get("containers", "a pod needs a spec with containers")
    if not containers.each():
        containers.fail("a pod needs at least one container")
    for container in containers.each() + spec.get("initContainers").each():
        _string(container.get("name"), "give the container a name")
        _resources(container.get("resources"))
    _resources(spec.get("resources"))
    _quantities(spec.get("overhead"))
    _string_map(spec.get("nodeSelector"))
    for volume in spec.get("volumes").each():
        for key in volume.value if isinstance(volume.value, dict) else volume.fail(A_MAPPING):
            if key != "name" and not isinstance(volume.get(key).value, dict | None):
                volume.get(key).fail(A_MAPPING)
    for field in ("schedulerName", "nodeName", "priorityClassName"):
        if spec.get(field).value is not None:
            _string(spec.get(field), A_STRING, empty=True)


def _resources(cursor: Cursor) -> None:
    if cursor.value is not None:
        _quantities(cursor.get("requests"))
        _quantities(cursor.get("limits"))


def _quantities(cursor: Cursor) -> None:
    def check(entry: Cursor) -> str:
        # JSON takes a bare number for an amount; servers print it as text, and readers rely on text.
        if isinstance(entry.value, int | float) and not isinstance(entry.value, bool):
            entry = Cursor(str(entry.value), entry.place, entry.path)
        if not isinstance(entry.value, str) or not QUANTITY.fullmatch(entry.value):
            entry.fail(A_QUANTITY)
        if nanos(entry.value) < 0:
            entry.fail("must be greater than or equal to 0")
        return entry.value

    _entries(cursor, check)


def _string_map(cursor: Cursor) -> None:
    def check(entry: Cursor) -> str:
        _string(entry, A_STRING, empty=True)
        return str(entry.value)

    _entries(cursor, check)


def _entries(cursor: Cursor, check: Callable[[Cursor], str]) -> None:
    if not isinstance(cursor.value, dict | None):
        cursor.fail(A_MAPPING)
    entries: dict[str, str] = cursor.value or {}
    for key in entries:
        entries[key] = check(cursor.get(key))


def _string(cursor: Cursor, remedy: str, *, empty: bool = False) -> None:
    if isinstance(cursor.value, bool | int | float):
        cursor.fail(A_STRING)
    if not isinstance(cursor.value, str) or not (cursor.value or empty):
        cursor.fail(remedy)
