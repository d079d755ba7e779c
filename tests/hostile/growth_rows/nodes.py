"""Fields of nodes."""

import json

from tests.benchmarks.workloads import read_node
from tests.hostile.arena import node
from tests.hostile.deciding import a_core, a_pod, decide
from tests.hostile.growth_rows.row import Cycle, Row, message, simulated
from tests.hostile.whole_core import pod_document


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

        def leave():
            joining.cache.remove_node(large)
            joining.cache.update_snapshot(joining.snapshot)

        return {
            "decoding": lambda: read_node(data),
            "message": message([written(n)]),
            "taken over": join,
            "others' cycles": lambda: decide(beside, a_pod("next", labels={"app": "x"})),
            "its end": leave,
            "simulate": simulated([written(n), pod_document("next")]),
        }

    def cycle(n):
        core = a_core()
        core.cache.add_node(read_node(json.dumps(written(n)).encode()))
        core.cache.update_snapshot(core.snapshot)
        return Cycle(core.algorithm, core.framework, core.snapshot, a_pod("next", labels={"app": "x"}))

    return Row("Node", field, written, stages, cycle)


def listed(key, entry):
    """A list of the node's status."""

    def change(document, n):
        document["status"][key] = [entry(i) for i in range(n)]

    return change


def labels(document, n):
    document["metadata"]["labels"].update({f"k{i}": "v" for i in range(n)})


def annotations(document, n):
    document["metadata"]["annotations"] = {f"k{i}": "v" for i in range(n)}


def taints(document, n):
    document["spec"] = {"taints": [{"key": f"k{i}", "value": "v", "effect": "NoSchedule"} for i in range(n)]}


def allocatable(document, n):
    document["status"]["allocatable"].update({f"example.com/r{i}": "1" for i in range(n)})


FIELDS = {
    "labels": labels,
    "annotations": annotations,
    "taints": taints,
    "images": listed("images", lambda i: {"names": [f"i{i}:1"], "sizeBytes": 1}),
    "names of an image": lambda d, n: d["status"].update(
        images=[{"names": [f"i{i}:1" for i in range(n)], "sizeBytes": 1}]
    ),
    "allocatable": allocatable,
    "declaredFeatures": listed("declaredFeatures", lambda i: f"f{i}"),
    "conditions": listed("conditions", lambda i: {"type": f"c{i}"}),
    "volumesAttached": listed("volumesAttached", lambda i: {"name": f"v{i}", "devicePath": ""}),
    "volumesInUse": listed("volumesInUse", lambda i: f"v{i}"),
    "addresses": listed("addresses", lambda i: {"type": "Hostname", "address": f"a{i}"}),
    "podCIDRs": lambda d, n: d.update(spec={"podCIDRs": [f"10.0.{i}.0/24" for i in range(n)]}),
    "features": lambda d, n: d["status"].update(features={f"f{i}": True for i in range(n)}),
    "runtimeHandlers": listed("runtimeHandlers", lambda i: {"name": f"h{i}"}),
}

ROWS = [of_node(field, change) for field, change in FIELDS.items()]
