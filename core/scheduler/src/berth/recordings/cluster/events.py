"""What an observer's file is made of: a JSON object a line, compressed by gzip (up to 0.1 by zstd).

    {"apiVersion": "simulation.berth.dev/v1alpha1", "kind": "ClusterRecording", ...}   what it is
    {"time": "2026-11-23T08:44:41.214360Z", "event": "Add", "resource": {...}}         what is there
    {"time": "2026-11-23T08:44:43.005117Z", "event": "Update", "resource": {...}}      what happens
    {"kind": "ClusterRecordingEnd", "reason": "size"}                                  why it ends

An event has the form that kube-scheduler-simulator's recorder writes, so both are read in one way.

Source: simulator/recorder/recorder.go of kubernetes-sigs/kube-scheduler-simulator.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import msgspec

from berth.recordings.core.header import API_VERSION
from berth.recordings.formats import EndReason

KIND: Final = "ClusterRecording"
END: Final = "ClusterRecordingEnd"
FORMAT: Final = 1
SUFFIX: Final = ".cluster.gz"


class ObserverHeader(msgspec.Struct, rename="camel", kw_only=True):
    """The first line of a file."""

    api_version: str = API_VERSION
    kind: str = KIND
    format: int = FORMAT
    version: str
    """Of Berth."""
    began: datetime
    objects: int
    """How many events after this line say what is there already."""
    anonymized: bool = False


class Verb(StrEnum):
    """What happens to an object; of one that is gone its names are known, and nothing else."""

    ADD = "Add"
    UPDATE = "Update"
    DELETE = "Delete"


class ObservedEvent(msgspec.Struct):
    """What happens to an object, and when an observer sees it."""

    time: datetime
    event: Verb
    resource: msgspec.Raw


class End(msgspec.Struct):
    """The last line of a file."""

    kind: str
    reason: EndReason


def line_of(seconds: float, verb: Verb, document: bytes) -> bytes:
    """An event as it is written. Units: seconds since the epoch."""
    event = ObservedEvent(datetime.fromtimestamp(seconds, UTC), verb, msgspec.Raw(document))
    return msgspec.json.encode(event)
