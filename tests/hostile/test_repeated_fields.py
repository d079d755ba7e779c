"""Every field that may repeat, of every object that is decoded from the API server, has its growth row.

A row covers the fields of its documents that have more entries where it is asked for more of them. A field is
known by its place in its struct and that of the field that holds it, so that a selector counts wherever it is
read anew.
"""

import typing
from functools import cache
from types import UnionType

import msgspec
import pytest

from berth.objects.pods.pod import Pod, PodObject
from berth.simulation.reading.kinds import KINDS
from tests.hostile.growth_rows import ROWS
from tests.hostile.whole_core import pod_document

FEW, MORE = 9, 13

METADATA = (
    "kept as it is where no row reads it; rows of pods, nodes, claims, namespaces and volumes decode as much"
)
SOURCE = "one source with a number of fields, of which a handle is read"
WITHOUT_ROW = {
    "metadata.ownerReferences": METADATA,
    "metadata.annotations": METADATA,
    "metadata.labels": METADATA,
    "spec.awsElasticBlockStore": SOURCE,
    "spec.gcePersistentDisk": SOURCE,
    "spec.azureDisk": SOURCE,
    "spec.azureFile": SOURCE,
    "spec.cinder": SOURCE,
    "spec.vsphereVolume": SOURCE,
    "spec.portworxVolume": SOURCE,
    "matchFields.values": "one value, as the API server validates; the row of node names has more",
}
"""Fields that need no row, by their name and that of the field that holds them, and why."""
UNCOUNTED = {
    "PriorityClass": "read by simulations alone, by name, once for a pod",
    "Node": "each is tried: `python -m tests.benchmarks growth` counts nodes",
    "Workload": "not read: its PodGroups say all that scheduling reads",
}
"""Kinds whose number has no row, and why."""


def repeated(kind, path=()):
    """The paths within a type to what may repeat, each a struct and its field: lists, maps, any JSON."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        yield from repeated(arguments[0], path)
    elif origin in {UnionType, typing.Union}:
        for one in arguments:
            yield from repeated(one, path)
    elif origin in {tuple, list, dict}:
        yield path
        yield from repeated(arguments[1 if origin is dict else 0], path)
    elif kind is typing.Any or kind is msgspec.Raw:
        yield path
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind, include_extras=True)
        for field in msgspec.structs.fields(kind):
            yield from repeated(hints[field.name], (*path, (kind.__name__, field.encode_name)))


def sizes(value, path=()):
    """The path of each list and map of a document, and its entries; keys may be part of a path or not."""
    if isinstance(value, dict | list):
        yield path, len(value)
    if isinstance(value, dict):
        for key, each in value.items():
            yield from sizes(each, (*path, key))
            yield from sizes(each, path)
    elif isinstance(value, list):
        for each in value:
            yield from sizes(each, path)


def documents(row, n):
    """All objects of a row with this many entries."""
    if row.kind == "Pod":
        return [pod_document("asked", **row.entry(n))]
    written = row.entry(n)
    listed = written if isinstance(written, list) else [written]
    return [*listed, pod_document("asked", **row.asks(n))] if row.asks else listed


def largest(row, n):
    """The most entries by kind and path; those of the kind itself are its objects."""
    found = {}
    for document in documents(row, n):
        kind = document["kind"]
        found[kind, ()] = found.get((kind, ()), 0) + 1
        for path, size in sizes(document):
            if path:
                found[kind, path] = max(found.get((kind, path), 0), size)
    return found


@cache
def growing():
    """Kind and path of all that has more entries in a row that is asked for more."""
    found = set()
    for row in ROWS:
        if row.kind != "answer":
            few = largest(row, FEW)
            found |= {place for place, size in largest(row, MORE).items() if size > few.get(place, 0)}
    return found


def without_row(kind):
    """The fields of a kind that may repeat and that no row has more of."""
    missing, covered = {}, set()
    for path in repeated(PodObject if kind.type is Pod else kind.type):
        names = tuple(name for _, name in path)
        if (kind.name, names) in growing():
            covered.add(path[-2:])
        else:
            missing[".".join(names[-2:])] = path[-2:]
    return [names for names, place in missing.items() if place not in covered]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_field_that_may_repeat_has_a_row(kind):
    """Else a reason in WITHOUT_ROW says why it needs none."""
    assert [] == [field for field in without_row(kind) if field not in WITHOUT_ROW]


def test_a_kind_of_which_there_may_be_many_has_a_row():
    """Else a reason in UNCOUNTED says why it needs none."""
    assert set() == {kind.name for kind in KINDS if (kind.name, ()) not in growing()} - UNCOUNTED.keys()


def test_no_reason_is_left_over():
    """A field or a kind that has a row, or that is gone, needs no reason."""
    fields = {field for kind in KINDS for field in without_row(kind)}
    uncounted = {kind.name for kind in KINDS if (kind.name, ()) not in growing()}

    assert set() == WITHOUT_ROW.keys() - fields
    assert {"Workload"} == UNCOUNTED.keys() - uncounted
    assert "Workload" not in {kind.name for kind in KINDS}
