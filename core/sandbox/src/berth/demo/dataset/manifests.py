"""Nodes, pods and other objects from Kubernetes files, as `kubectl get -o yaml` or a hand wrote them.

Lists are taken apart, and the fields that only a server may set are left out, so that what one cluster
printed can be created in the next. Statuses stay: a node's capacity stands there.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from berth.demo.dataset.documents import Place, read_documents
from berth.demo.dataset.errors import UnreadableSourceError, shown
from berth.demo.dataset.field_checks import check_node, check_object, check_pod
from berth.demo.dataset.source import Document, Objects

SUFFIXES = (".yaml", ".yml", ".json")
# A create request that carries these is refused, or they are silently replaced.
SET_BY_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


class ManifestFiles(msgspec.Struct, frozen=True):
    """Files, or folders whose .yaml, .yml and .json files are read in the order of their names."""

    paths: Sequence[Path]

    def load(self) -> Objects:
        """Read everything, then give it.

        Raises:
            BrokenDocumentError: the first document that is wrong; nothing is loaded.
            UnreadableSourceError: a path is missing or has no such file.
        """
        objects = Objects()
        homes = {"Node": objects.nodes, "Pod": objects.pods}
        defined: dict[tuple[str, ...], Place] = {}
        for place, prefix, document in self._objects():
            check_object(document, place, prefix)
            _refuse_repeat(document, place, prefix, defined)
            if document["apiVersion"] == "v1":
                _check_core_kind(document, place, prefix)
                homes.get(document["kind"], objects.others).append(document)
            else:
                objects.others.append(document)
        if not defined:
            names = ", ".join(map(str, self.paths))
            raise UnreadableSourceError(f"{names}: no Kubernetes object in it; give a file that holds some")
        return objects

    def _objects(self) -> Iterator[tuple[Place, str, Document]]:
        for path in self.paths:
            for file in manifest_files(path):
                for place, document in read_documents(file):
                    yield from taken_apart(document, place, "")


def manifest_files(path: Path) -> list[Path]:
    """The path itself, or what a folder has of Kubernetes files. Raises: UnreadableSourceError."""
    if not path.is_dir():
        return [path]
    found = sorted(entry for entry in path.iterdir() if entry.suffix in SUFFIXES and entry.is_file())
    if not found:
        raise UnreadableSourceError(
            f"{path}: no {', '.join(SUFFIXES)} file in it; give a file or another folder"
        )
    return found


def taken_apart(document: Any, place: Place, prefix: str) -> Iterator[tuple[Place, str, Document]]:
    """Yield the objects of a document, each with the path to it: one, or those of a list."""
    if not isinstance(document, dict):
        raise place.broken(
            prefix or "document",
            shown(document),
            "an object has apiVersion, kind and metadata",
        )
    kind = document.get("kind")
    if not (isinstance(kind, str) and kind.endswith("List") and (kind == "List" or "items" in document)):
        yield place, f"{prefix}." if prefix else "", document
        return
    field = f"{prefix}.items" if prefix else "items"
    items = document.get("items")
    if not isinstance(items, list | None) or "items" not in document:
        found = "nothing" if items is None else shown(items)
        raise place.broken(field, found, "a list of objects is expected")
    for index, item in enumerate(items or ()):
        yield from taken_apart(_completed(item, document), place, f"{field}[{index}]")


def _completed(item: Any, parent: Document) -> Any:
    """Give an item of a typed list, such as a NodeList, the kind that the server leaves out there."""
    kind = parent["kind"].removesuffix("List")
    if not isinstance(item, dict) or not kind:
        return item
    return {"apiVersion": parent.get("apiVersion"), "kind": kind} | item


def _check_core_kind(document: Document, place: Place, prefix: str) -> None:
    if document["kind"] == "Node":
        check_node(document, place, prefix)
    if document["kind"] == "Pod":
        document["metadata"].setdefault("namespace", "default")
        check_pod(document, place, prefix)


def _refuse_repeat(
    document: Document, place: Place, prefix: str, defined: dict[tuple[str, ...], Place]
) -> None:
    metadata = document["metadata"]
    for field in SET_BY_SERVER:
        metadata.pop(field, None)
    group = document["apiVersion"].rpartition("/")[0]
    if "name" not in metadata:
        # A generateName never clashes; it still counts as an object that was defined.
        defined[(group, document["kind"], str(len(defined)))] = place
        return
    default = "default" if document["kind"] == "Pod" else ""
    identity = (group, document["kind"], metadata.get("namespace") or default, metadata["name"])
    first = defined.setdefault(identity, place)
    if first is not place:
        where = f"{first.file}, document {first.document}"
        found = f"{document['kind']} {shown(metadata['name'])} again (first in {where})"
        raise place.broken(f"{prefix}metadata.name", found, "give each object its own name")
