"""How objects leave the server: whole, converted, as rows of a table, or as metadata alone.

A view turns stored entries into bytes. The plain one, which all but kubectl's printing uses, only splices.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.reading.event_conversion import NEW_VERSION, from_core
from berth.sandbox.reading.tables_kinds import table_for
from berth.sandbox.request import JSON
from berth.sandbox.store import Json, StoredObject, encode

_META_VERSION: Final = "meta.k8s.io/v1"
_ITEMS_A_PART: Final = 100


class ObjectView:
    """Objects as they are stored."""

    def __init__(self, resource: ServedResource) -> None:
        self.resource = resource

    def one(self, entry: StoredObject) -> bytes:
        """Encode one object, as a get answers or a watch event carries it."""
        return entry.body

    def many(self, entries: Sequence[StoredObject], metadata: Json) -> list[bytes]:
        """Encode a list of objects, in parts."""
        resource = self.resource
        head = encode(
            {"kind": f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": metadata}
        )
        # Each body without its kind and apiVersion, which a list says once; custom resources keep theirs.
        cut, opening = (resource.envelope, b"{") if resource.custom is None else (0, b"")
        parts = [head[:-1], b',"items":[']
        for start in range(0, len(entries), _ITEMS_A_PART):
            bodies = [entry.body[cut:] for entry in entries[start : start + _ITEMS_A_PART]]
            parts.append((b"," if start else b"") + opening + (b"," + opening).join(bodies))
        parts.append(b"]}\n")
        return parts


class ConvertedView(ObjectView):
    """Events in the version in which they are not stored."""

    def one(self, entry: StoredObject) -> bytes:
        """Encode one event as events.k8s.io/v1."""
        return encode(from_core(entry.decode()))

    def many(self, entries: Sequence[StoredObject], metadata: Json) -> list[bytes]:
        """Encode a list of events as events.k8s.io/v1."""
        items = [from_core(entry.decode()) for entry in entries]
        document = {"kind": "EventList", "apiVersion": NEW_VERSION, "metadata": metadata, "items": items}
        return [encode(document), b"\n"]


class VersionedView(ObjectView):
    """Custom resources in a version other than the one in which they are stored."""

    def one(self, entry: StoredObject) -> bytes:
        """Encode one object in the version asked for."""
        return encode({**entry.decode(), "apiVersion": self.resource.group_version})

    def many(self, entries: Sequence[StoredObject], metadata: Json) -> list[bytes]:
        """Encode a list of objects in the version asked for."""
        shown = [StoredObject(entry.key, entry.revision, self.one(entry)) for entry in entries]
        return super().many(shown, metadata)


class TableView(ObjectView):
    """Objects as rows with the columns kubectl prints."""

    def __init__(self, resource: ServedResource, include: str, clock: Callable[[], float]) -> None:
        super().__init__(resource)
        self._table = table_for(resource)
        self._include = include or "Metadata"
        self._clock = clock

    def one(self, entry: StoredObject) -> bytes:
        """Encode a table of one row."""
        return encode(self._document([entry], {"resourceVersion": str(entry.revision)}))

    def many(self, entries: Sequence[StoredObject], metadata: Json) -> list[bytes]:
        """Encode a table."""
        return [encode(self._document(entries, metadata)), b"\n"]

    def _document(self, entries: Sequence[StoredObject], metadata: Json) -> Json:
        now = self._clock()
        rows = []
        for entry in entries:
            document = entry.decode()
            row: Json = {"cells": self._table.cells(document, now)}
            shown = self._object(document)
            if shown is not None:
                row["object"] = shown
            rows.append(row)
        return {
            "kind": "Table",
            "apiVersion": _META_VERSION,
            "metadata": metadata,
            "columnDefinitions": self._table.definitions,
            "rows": rows,
        }

    def _object(self, document: Json) -> Any:
        if self._include == "None":
            return None
        return document if self._include == "Object" else partial_metadata(document)


class MetadataView(ObjectView):
    """Objects reduced to their metadata."""

    def one(self, entry: StoredObject) -> bytes:
        """Encode one object's metadata."""
        return encode(partial_metadata(entry.decode()))

    def many(self, entries: Sequence[StoredObject], metadata: Json) -> list[bytes]:
        """Encode a list of objects' metadata."""
        items = [partial_metadata(entry.decode()) for entry in entries]
        kind = "PartialObjectMetadataList"
        document = {"kind": kind, "apiVersion": _META_VERSION, "metadata": metadata, "items": items}
        return [encode(document), b"\n"]


def partial_metadata(document: Json) -> Json:
    """Reduce an object to its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": _META_VERSION, "metadata": document["metadata"]}


def _plain_view(resource: ServedResource) -> ObjectView:
    if resource.group_version == NEW_VERSION:
        return ConvertedView(resource)
    if resource.custom is not None and resource.custom.stored is not resource:
        return VersionedView(resource)
    return ObjectView(resource)


def choose_view(
    resource: ServedResource, accept: str, include: str, clock: Callable[[], float]
) -> ObjectView:
    """Give the view that the Accept header asks for.

    Raises: ApiError when none of the formats it accepts is written here.
    """
    plain = _plain_view(resource)
    if accept in ("", JSON, "*/*"):
        return plain
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        wanted = dict(part.partition("=")[::2] for part in parameters)
        if media not in (JSON, "*/*", "application/*"):
            continue
        if wanted.get("as") == "Table" and wanted.get("v") == "v1":
            return TableView(resource, include, clock)
        if wanted.get("as", "").startswith("PartialObjectMetadata"):
            return MetadataView(resource)
        if "as" not in wanted:
            return plain
    raise ApiError.not_acceptable()
