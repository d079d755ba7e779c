"""Recordings of clusters, from documents."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import zstandard

from berth.recordings.cluster.events import END, End, ObserverHeader
from berth.recordings.formats import EndReason
from tests.unit.simulation.kit import node, pod, thing

BEGAN = datetime(2026, 11, 23, 8, 44, 41, 214_360, tzinfo=UTC)


def a_node(name, **fields):
    """A node that offers what it has, as an API server gives it."""
    made = node(name, **fields)
    made["status"]["allocatable"] = made["status"]["capacity"]
    return made


def a_pod(name, *, namespace="default", **fields):
    """A pod in a namespace, with a UID, as an API server gives it."""
    made = pod(name, schedulerName="default-scheduler", **fields)
    made["metadata"] |= {"namespace": namespace, "uid": f"uid-{name}"}
    return made


def bound(document, name):
    """The pod on that node."""
    return {**document, "spec": {**document["spec"], "nodeName": name}}


def unschedulable(document, message="0/1 nodes are available."):
    """The pod with the condition that it found no node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {**document, "status": {"conditions": [condition]}}


def in_namespace(kind, name, version="v1", *, metadata=None, **fields):
    """An object of another kind in the namespace."""
    made = thing(kind, name, version, **fields)
    made["metadata"] |= {"namespace": "default", "uid": f"uid-{name}", **(metadata or {})}
    return made


def lines(*events):
    """Events, a second apart, as kube-scheduler-simulator's recorder writes them: verb and object.

    Source: type Record of simulator/recorder/recorder.go, kubernetes-sigs/kube-scheduler-simulator.
    """
    return [
        json.dumps({"time": (BEGAN + timedelta(seconds=i)).isoformat(), "event": verb, "resource": resource})
        for i, (verb, resource) in enumerate(events)
    ]


def simulator_file(path, *events):
    """A recording of kube-scheduler-simulator."""
    path.write_text("".join(f"{line}\n" for line in lines(*events)), encoding="utf-8")
    return path


def observer_file(path, *events, reason=EndReason.STOPPED):
    """A file of an observer; without a reason it is cut off."""
    head = msgspec.json.encode(ObserverHeader(version="test", began=BEGAN, objects=0))
    end = [msgspec.json.encode(End(END, reason))] if reason else []
    text = b"".join(line + b"\n" for line in [head, *map(str.encode, lines(*events)), *end])
    path.write_bytes(zstandard.compress(text))
    return path
