"""How the cost of an object grows with each of its fields that may repeat, in counted work: the growth table.

Work is function calls, bytes written out as JSON to weigh or to compare what is kept, and the most memory in
use. It is counted at n, 2n and 4n: `growth` is how many times as much each further entry costs from 2n to 4n
as from n to 2n, and of memory how many times as much an entry takes at 4n as at n. 1 is linear.
"""

import asyncio
import json
import time
import tracemalloc
from collections.abc import Callable
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

from berth.explain.trying import Trying
from berth.framework.cycle_budget import UNMETERED
from berth.objects import pod_template
from berth.objects.decode import decoder
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.objects.workloads import Namespace, Service
from berth.queue.nominator import Nominator
from berth.snapshot import recent
from tests.benchmarks.workloads import read_node, read_pod
from tests.hostile.arena import node, pod
from tests.hostile.deciding import HOST, REQUIRED, a_core, a_pod, decide, place
from tests.hostile.test_shapes_of_pods import ASKED
from tests.hostile.work import calls

API_BYTES = 1_500_000
"""What the API server takes of one object as JSON: etcd's limit, about 1.5 MiB."""
MOST_GROWTH = 1.35
"""Above this an entry costs more, the more there are; tables that grow in steps cause what is below."""
LITTLE = {"calls": 400, "bytes": 4_000, "memory": 200_000}
"""Work that is less from n to 4n says nothing about growth."""

RUNS = count()
Steps = dict[str, Callable[[], object]]


class Row(NamedTuple):
    """A field of a kind; `stages(n)` makes an object with n entries, and what is done about it, by stage."""

    kind: str
    field: str
    entry: Callable[[int], object]
    stages: Callable[[int], Steps]

    def at_the_limit(self) -> int:
        """How many entries the API server takes."""
        few, many = (len(json.dumps(self.entry(n))) for n in (100, 1100))
        return int(API_BYTES / ((many - few) / 1000))


def of_pod(field, shape):
    """A field of a pod: as it comes, at its own cycle, at that of the next pod, and when it is explained."""

    def fields(n):
        """Unlike those of any other pod: nothing is known of its template."""
        said = shape(n)
        return {**said, "labels": {**said.get("labels", {}), "run": f"r{next(RUNS)}"}}

    def stages(n):
        data = json.dumps(pod("hostile", **fields(n))).encode()
        own, beside, explaining = a_core(), a_core(), a_core()
        asked, asked_about = a_pod("hostile", **fields(n)), a_pod("hostile", **fields(n))
        arriving, placed = a_pod("hostile", **fields(n)), place(beside, a_pod("hostile", **fields(n)))
        return {
            "decoding": lambda: read_pod(data),
            "its own cycle": lambda: decide(own, asked),
            "taken over": lambda: place(own, arriving),
            "others' cycles": lambda: decide(beside, a_pod("next", labels={"app": "x"})),
            "explain": lambda: explained(explaining, asked_about),
            "its end": lambda: beside.cache.remove_pod(placed),
        }

    return Row("Pod", field, shape, stages)


def explained(core, asked):
    """What `explain` asks of plugins."""
    trying = Trying(Nominator(lambda *_: None, lambda _: None))

    async def tried():
        await trying.tried(core.framework, asked, core.snapshot, UNMETERED)
        await trying.by_plugin(core.framework, asked, core.snapshot, UNMETERED)

    asyncio.run(tried())


def of_node(field, change):
    """A field of a node: as it comes, when it is taken over, and at the next pod's cycle."""

    def written(n):
        document = node(0)
        document["metadata"] |= {"name": "large", "uid": "large"}
        change(document, n)
        return document

    def stages(n):
        data = json.dumps(written(n)).encode()
        joining, beside = a_core(), a_core()
        large = read_node(data)
        beside.cache.add_node(large)
        beside.cache.update_snapshot(beside.snapshot)

        def join():
            joining.cache.add_node(large)
            joining.cache.update_snapshot(joining.snapshot)

        return {
            "decoding": lambda: read_node(data),
            "taken over": join,
            "others' cycles": lambda: decide(beside, a_pod("next", labels={"app": "x"})),
        }

    return Row("Node", field, written, stages)


def of_other(kind, field, store, written, **asking):
    """A field of an object that plugins look up: as it comes, and at the cycle of a pod that it concerns."""
    read = decoder(kind)

    def stages(n):
        data = json.dumps(written(n)).encode()
        core = a_core()
        getattr(core.listers, store).put(read(data))
        return {
            "decoding": lambda: read(data),
            "others' cycles": lambda: decide(core, a_pod("next", labels={"app": "x"}, **asking)),
        }

    return Row(kind.__name__, field, written, stages)


def terms_by_key(n):
    return {
        "affinity": {
            "podAntiAffinity": {
                REQUIRED: [
                    {"topologyKey": f"k{i}", "namespaceSelector": {}, "labelSelector": {}} for i in range(n)
                ]
            }
        }
    }


def terms_that_mean_everybody(n):
    absent = ({"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]} for i in range(n))
    terms = [{"topologyKey": HOST, "namespaceSelector": {}, "labelSelector": each} for each in absent]
    return {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}


def equal_terms(n):
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    return {"affinity": {"podAffinity": {REQUIRED: [term] * n}}}


def annotations(n):
    return {"annotations": {f"k{i}": "v" for i in range(n)}}


def env(n):
    return {"container": {"env": [{"name": f"E{i}", "value": "v"} for i in range(n)]}}


def metadata(name, **more):
    return {"name": name, "namespace": "default", "uid": name, **more}


def names(shape):
    """What a shape is called in the table."""
    return shape.__qualname__.partition(".")[0].replace("_", " ")


def pods_fields():
    """The rows of pods, by name; several shapes of one maker are numbered."""
    found = {}
    for shape in (*ASKED, terms_by_key, terms_that_mean_everybody, equal_terms, annotations, env):
        name = names(shape)
        found[name if name not in found else f"{name} {len(found)}"] = shape
    return found


CLAIMED = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}

ROWS = [
    *(of_pod(field, shape) for field, shape in pods_fields().items()),
    of_node("labels", lambda d, n: d["metadata"]["labels"].update({f"k{i}": "v" for i in range(n)})),
    of_node("annotations", lambda d, n: d["metadata"].update(annotations={f"k{i}": "v" for i in range(n)})),
    of_node(
        "taints",
        lambda d, n: d.update(
            spec={"taints": [{"key": f"k{i}", "value": "v", "effect": "NoSchedule"} for i in range(n)]}
        ),
    ),
    of_node(
        "images",
        lambda d, n: d["status"].update(images=[{"names": [f"i{i}:1"], "sizeBytes": 1} for i in range(n)]),
    ),
    of_node(
        "allocatable",
        lambda d, n: d["status"]["allocatable"].update({f"example.com/r{i}": "1" for i in range(n)}),
    ),
    of_node(
        "declaredFeatures", lambda d, n: d["status"].update(declaredFeatures=[f"f{i}" for i in range(n)])
    ),
    of_node("conditions", lambda d, n: d["status"].update(conditions=[{"type": f"c{i}"} for i in range(n)])),
    of_other(
        Namespace,
        "labels",
        "namespaces",
        lambda n: {"metadata": {**metadata("default"), "labels": {f"k{i}": "v" for i in range(n)}}},
    ),
    of_other(
        Service,
        "selector",
        "services",
        lambda n: {"metadata": metadata("s"), "spec": {"selector": {f"k{i}": "v" for i in range(n)}}},
    ),
    of_other(
        PersistentVolumeClaim,
        "accessModes",
        "persistent_volume_claims",
        lambda n: {"metadata": metadata("data"), "spec": {"accessModes": ["ReadWriteOnce"] * n}},
        **CLAIMED,
    ),
    of_other(
        PersistentVolume,
        "node affinity terms",
        "persistent_volumes",
        lambda n: {
            "metadata": metadata("pv"),
            "spec": {
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(n)
                        ]
                    }
                }
            },
        },
        **CLAIMED,
    ),
]


class Work(NamedTuple):
    """What a step took."""

    calls: int
    bytes: int
    memory: int


def most_memory(step):
    """How many bytes more than before are in use at most."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        step()
        return max(tracemalloc.get_traced_memory()[1] - before, 0)
    finally:
        tracemalloc.stop()


@contextmanager
def counting_bytes(found):
    """Adds up what is written out as JSON to be weighed, hashed or compared."""
    before = recent._encode, pod_template._encode

    def counting(encode):
        def write(value):
            data = encode(value)
            found.append(len(data))
            return data

        return write

    recent._encode, pod_template._encode = map(counting, before)
    try:
        yield
    finally:
        recent._encode, pod_template._encode = before


def work(row, n):
    """The work of each stage at that size."""
    memory = {stage: most_memory(step) for stage, step in row.stages(n).items()}
    found = {}
    for stage, step in row.stages(n).items():
        written = []
        with counting_bytes(written):
            number = calls(step)
        found[stage] = Work(number, sum(written), memory[stage])
    return found


def growths(row, n):
    """By stage and measure, how many times as much an entry costs from 2n to 4n as from n to 2n."""
    one, two, four = (work(row, size) for size in (n, 2 * n, 4 * n))
    found = {}
    for stage in one:
        for measure, little in LITTLE.items():
            few, more, most = (getattr(each[stage], measure) for each in (one, two, four))
            if measure == "memory" and most >= little:
                # Tables double in steps: the difference of two sizes says little.
                found[stage, measure] = most / 4 / max(few, little / 4)
            elif most - few >= little and more > few:
                found[stage, measure] = (most - more) / 2 / (more - few)
            else:
                found[stage, measure] = 1.0
    return found


HEADINGS = ["kind", "field", "entries", "growth", "decoding ms", "own cycle ms", "others ms", "explain ms"]
SHOWN = ("decoding", "its own cycle", "others' cycles", "explain")


def at_the_limit(row):
    """The table's row: as many entries as the API server takes; growth up to an eighth of them."""
    n = row.at_the_limit()
    worst = max(growths(row, n // 32).values())
    took = {}
    for stage, step in row.stages(n).items():
        before = time.process_time()
        step()
        took[stage] = time.process_time() - before
    if "taken over" in took and "its own cycle" not in took:
        took["its own cycle"] = took["taken over"]
    shown = (f"{1000 * took[stage]:.0f}" if stage in took else "" for stage in SHOWN)
    return [row.kind, row.field, str(n), f"{worst:.2f}", *shown]
