"""Random clusters of two tenants, one quiet and one hostile: what each writes, and when.

The hostile tenant draws several rows of the growth table together, each with up to as many entries as the API
server takes: it writes what has a namespace, and pods that ask for it. What has none, as nodes, volumes and
slices, is the cluster's, whichever tenants there are.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from tests.hostile.growth_rows import ROWS
from tests.hostile.growth_rows.row import API_BYTES, Row
from tests.hostile.whole_core import node_document, pod_document

QUIET = "quiet"
QUIET_PODS = 400
EVERY_SECONDS = 0.1
"""A pod of the quiet tenant comes so often."""
BEGIN_SECONDS, WITHIN_SECONDS = 2.0, 10.0
"""When the hostile tenant begins to write, and until when its objects come."""
FIELD_BYTES = API_BYTES - 4096
"""What a field may take of an object."""
MAX_BYTES = 8 * API_BYTES
"""What the hostile tenant has written once, at most: quotas bound it."""
MIN_NODES, MAX_NODES = 10, 200
MAX_ROWS, MAX_COPIES, MAX_NAMESPACES = 5, 4, 5

DRAWN = [row for row in ROWS if row.kind != "answer"]
"""Answers are a plugin's, and no tenant's."""

Document = dict[str, Any]
encode = msgspec.json.encode


class Written(NamedTuple):
    """An object as it is written; one that stays for a while only is created anew then, as another.

    Units: seconds, `at` from the beginning.
    """

    at: float
    group: str
    kind: str
    data: bytes
    stays: float = math.inf


class Drawn(NamedTuple):
    """A cluster, what it has from the beginning, and what its tenants write."""

    seed: int
    nodes: int
    rows: list[str]
    there: list[Written]
    quiet: list[Written]
    hostile: list[Written]


def drawn(seed: int, *, quiet_pods: int = QUIET_PODS, part: int = 1) -> Drawn:
    """The cluster of that seed; rows of many entries have so many times fewer with `part`."""
    chance = random.Random(seed)
    nodes = round(10 ** chance.uniform(math.log10(MIN_NODES), math.log10(MAX_NODES)))
    rows = [(row, entries(row, chance, part)) for row in chance.sample(DRAWN, chance.randint(1, MAX_ROWS))]
    namespaces = [f"hostile-{i}" for i in range(chance.choice([1, 1, 1, MAX_NAMESPACES]))]
    stays = chance.choice([math.inf, math.inf, 1.0, 5.0])
    documents = distinct(
        document
        for number, (row, size) in enumerate(rows)
        for document in of_row(row, size, chance, f"pod-{number}", chance.choice(namespaces))
    )
    hostile, there = [], [written(node_document(number)) for number in range(nodes)]
    left = MAX_BYTES // part
    for document in documents:
        if "namespace" not in document["metadata"]:
            there.append(written(document))
        elif left > 0:
            at = chance.uniform(BEGIN_SECONDS, WITHIN_SECONDS)
            hostile.append(written(document, at, stays if document["kind"] == "Pod" else math.inf))
            left -= len(hostile[-1].data)
    names = [f"{row}, {size}" for row, size in rows]
    quiet = [written(quiet_document(i), i * EVERY_SECONDS) for i in range(quiet_pods)]
    return Drawn(seed, nodes, names, there, quiet, hostile)


def entries(row: Row, chance: random.Random, part: int) -> int:
    """How many entries: as many as there may be, or any number below, small ones as likely as large ones."""
    limit = row.at_the_limit()
    limit = limit // part if limit > part * 10 else limit
    return limit if chance.random() < 0.5 else max(1, round(limit ** chance.random()))


def of_row(row: Row, size: int, chance: random.Random, prefix: str, namespace: str) -> Iterator[Document]:
    """The objects of a row, and pods that they concern; or pods, some of them on nodes."""
    fields = fitting(row.entry, size)
    if row.kind != "Pod":
        for document in [fields] if isinstance(fields, dict) else fields:
            yield in_namespace(document, namespace)
        fields = fitting(row.asks, size) if row.asks else {}
    for copy in range(chance.randint(1, MAX_COPIES)):
        name = f"{prefix}-{copy}"
        document = in_namespace(pod_document(name, **fields), namespace)
        if chance.random() < 0.5:
            # Its template is like no other.
            document["metadata"]["labels"] = {**document["metadata"]["labels"], "run": name}
        if chance.random() < 0.5:
            document["spec"]["nodeName"] = f"node-{chance.randrange(MIN_NODES)}"
        yield document


def fitting(made: Callable[[int], Any], size: int) -> Any:
    """What is made of so many entries, or of fewer where the API server takes no object so large."""
    found = made(size)
    longest = max(len(encode(each)) for each in (found if isinstance(found, list) else [found]))
    return found if longest <= FIELD_BYTES else made(size * FIELD_BYTES // longest)


def in_namespace(document: Document, namespace: str) -> Document:
    """The same object in another namespace, or of it."""
    metadata = {**document["metadata"]}
    if "namespace" in metadata:
        metadata["namespace"] = namespace
        metadata["uid"] = f"{namespace}-{document['kind']}-{metadata['name']}"
    elif document["kind"] == "Namespace" and metadata["name"] == "default":
        metadata["name"] = namespace
    return {**document, "metadata": metadata}


def distinct(documents: Iterable[Document]) -> Iterator[Document]:
    """The first of each name: the API server takes no second one."""
    known = set()
    for document in documents:
        metadata = document["metadata"]
        key = (document["kind"], metadata.get("namespace"), metadata["name"])
        if key not in known:
            known.add(key)
            yield document


def written(document: Document, at: float = 0.0, stays: float = math.inf) -> Written:
    """The object as JSON."""
    group = document["apiVersion"].rpartition("/")[0]
    return Written(at, group, document["kind"], encode(document), stays)


def quiet_document(number: int) -> Document:
    """A plain pod of one of three workloads."""
    document = pod_document(f"quiet-{number}", labels={"app": f"web-{number % 3}"})
    return in_namespace(document, QUIET)
