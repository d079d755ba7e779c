"""A row of the growth table: what it writes, and what is done about it, stage by stage."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from berth.explain.trying import Trying
from berth.framework.attempts.cycle_budget import UNMETERED
from berth.objects.label_selector import MAX_VALUES
from berth.objects.pods.pod import Pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.cluster_state.watched_objects import decode_object
from berth.queue.pools.nominator import Nominator
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.kinds import BY_NAME
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from berth_plugin_proto import state_pb2
from tests.hostile.deciding import HOST
from tests.hostile.whole_core import WholeCore, loaded, node_document, pod_document

API_BYTES = 1_572_864
"""What the API server takes of one object as JSON: etcd's limit, 1.5 MiB; by protobuf no more entries fit."""
OBJECTS = 5_000
"""How many objects of a kind there are where a row is about their number: quotas bound it."""

SIMULATED_SECONDS = 120.0
"""For how long, by its own time: a pod that is tried again and again costs the same each time."""

RUNS = count()
Steps = dict[str, Callable[[], object]]
Document = dict[str, Any]


class Cycle(NamedTuple):
    """Who decides on a pod, and where."""

    algorithm: Any
    framework: Any
    snapshot: Any
    pod: Pod


class Row(NamedTuple):
    """A field of a kind; `stages(n)` makes an object with n entries, and what is done about it, by stage.

    `cycle(n)` gives the pod's own cycle, to be run with a meter, where there is one. `max_entries` is how
    many entries the API server takes where that is not a matter of bytes. `asks(n)` has the fields of the pod
    that the objects concern, where the row is of objects.
    """

    kind: str
    field: str
    entry: Callable[[int], object]
    stages: Callable[[int], Steps]
    cycle: Callable[[int], "Cycle"] | None
    max_entries: int | None = None
    asks: Callable[[int], Document] | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.field}"

    @property
    def bound(self) -> str:
        """What bounds the entries, or what they cost where the API server bounds the object's size alone."""
        if self.kind == "answer":
            return "ours"
        match self.max_entries:
            case None:
                return "size, a cycle's budget" if self.cycle else "size"
            case number if number == OBJECTS:
                return "quota, a cycle's budget"
            case number if number == MAX_VALUES or self.kind == "Pod":
                return "ours: 8,192"
            case _:
                return "API server"

    def at_the_limit(self) -> int:
        """How many entries the API server takes, or we do."""
        if self.max_entries is not None:
            return self.max_entries
        few, many = (len(json.dumps(self.entry(n), separators=(",", ":"))) for n in (100, 1100))
        return int(API_BYTES / ((many - few) / 1000))


def explained(framework, asked, snapshot):
    """What `explain` asks of plugins."""
    trying = Trying(Nominator(lambda *_: None, lambda _: None))

    async def tried():
        await trying.tried(framework, asked, snapshot, UNMETERED)
        await trying.by_plugin(framework, asked, snapshot, UNMETERED)

    asyncio.run(tried())


def decoded(document):
    """The object as the watch brings it."""
    group = document["apiVersion"].rpartition("/")[0]
    return BY_NAME[group, document["kind"]].decode(json.dumps(document).encode())


def simulated(documents):
    """`berth simulate` with a file of these documents, and nodes."""
    folder = tempfile.TemporaryDirectory()
    file = Path(folder.name) / "cluster.json"
    nodes = [node_document(number) for number in range(6)]
    file.write_text("\n".join(json.dumps(each) for each in (*nodes, *documents)))

    def run():
        with folder:
            simulate(read_cluster([file]), SimulationOptions(loaded(), max_seconds=SIMULATED_SECONDS))

    return run


def message(documents):
    """What a sidecar is sent of the objects."""
    read = [json.dumps(each, separators=(",", ":")).encode() for each in documents]

    def sent():
        size = 0
        for data in read:
            known = decode_object(data)
            key = state_pb2.ObjectKey(resource="things", namespace=known.namespace, name=known.name)
            upsert = state_pb2.ObjectUpsert(key=key, object=known.data)
            change = state_pb2.Change(object_upsert=upsert)
            size += len(state_pb2.SyncRequest(chunk=state_pb2.Chunk(changes=[change])).SerializeToString())
        return size

    return sent


def message_about(document):
    """What a sidecar is sent when it is asked about a pod that is placed."""
    data = json.dumps(document, separators=(",", ":")).encode()
    kept = RawObjects[Pod]()
    decode = kept.decoding(BY_NAME["", "Pod"].decode)

    def sent():
        placed = decode(data)
        upsert = state_pb2.PodUpsert(uid=placed.uid, node_name="node-0", object=kept.get(placed.uid))
        change = state_pb2.Change(pod_upsert=upsert)
        return len(state_pb2.SyncRequest(chunk=state_pb2.Chunk(changes=[change])).SerializeToString())

    return sent


def of_objects(kind, field, documents, *, max_entries=None, asks=None, **asking):
    """A field of objects that plugins look up, or the number of such objects.

    They come while a pod waits that they concern, whose fields are `asking`, or `asks(n)`; it is tried, then
    another one.
    """

    def fields(n):
        return asks(n) if asks else asking

    def cycle(n):
        core = WholeCore()
        for each in documents(n):
            core.bring(decoded(each))
        core.take_over()
        asked = decoded(pod_document("user", **fields(n)))
        return Cycle(core.core.schedule_one.algorithm, core.framework, core.core.snapshot, asked)

    def stages(n):
        written, said = documents(n), fields(n)
        objects = [decoded(each) for each in written]
        user = pod_document("user", **said)
        arriving, known = WholeCore(), WholeCore()
        arriving.core.pod_handler.on_add(decoded(pod_document("before", **said)))
        arriving.try_next()
        for each in objects:
            known.bring(each)
        known.take_over()
        asked, other = decoded(user), decoded(pod_document("next", labels={"app": "x"}))

        def arrive():
            for each in objects:
                arriving.bring(each)
            arriving.take_over()

        def leave():
            for each in objects:
                arriving.take(each)
            arriving.take_over()

        return {
            "decoding": lambda: [decoded(each) for each in written],
            "message": message(written),
            "taken over": arrive,
            "its own cycle": lambda: known.schedule(asked),
            "others' cycles": lambda: known.schedule(other),
            "explain": lambda: explained(known.framework, asked, known.core.snapshot),
            "its end": leave,
            "simulate": simulated([*written, user]),
        }

    return Row(kind, field, documents, stages, cycle, max_entries, fields)


def lists_of_a_term(n):
    """Terms of a node selector, each list of which repeats: expressions, values of one, and fields."""
    values = [f"node-{i}" for i in range(n)]
    one = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    return [
        {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]},
        {"matchExpressions": [{"key": HOST, "operator": "In", "values": values}]},
        {"matchFields": [one] * n},
    ]


def metadata(name, **more):
    """The metadata of an object in the pods' namespace."""
    return {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", **more}


def thing(api_version, kind, name, **fields):
    """A document of any kind."""
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata(name), **fields}
