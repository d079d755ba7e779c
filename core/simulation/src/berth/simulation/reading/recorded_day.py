"""The day that a recording of a cluster is: what was there, and when pods and nodes came and went.

    pod, first seen without a node --> comes then, or when its last scheduling gate went
        bound, ended or deleted -----> ends so long after it has its node here
        deleted, never bound --------> is deleted then
        evicted ---------------------> does not end: how long it would have run is not known
    pod, first seen on a node -------> is there, and ends as it did
    node ----------------------------> comes and leaves as it did, as it was at first
    anything else -------------------> is there from the beginning, as it was at first

An object of the name of one that is gone gets another name. Which node a pod was bound to, and why pods
waited, is not taken over: that is what a simulation is asked about.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from berth.recordings.cluster.events import Verb
from berth.simulation.reading.recorded_events import RecordedEvent
from berth.simulation.reading.timeline import ARRIVAL, DEPARTURE, DURATION

Document = dict[str, Any]
_Key = tuple[str, str, str, str]

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_EVICTED: Final = "DisruptionTarget"


@dataclass(slots=True)
class _Life:
    """An object as it came; times are in seconds after the beginning."""

    document: Document
    came: float
    bound: float | None = None
    over_at: float | None = None
    evicted: bool = False


class RecordedDay:
    """The objects of a recording, with their times in annotations."""

    def __init__(self, events: Iterable[RecordedEvent]) -> None:
        """Take all events over. Raises: InputError, as the events do."""
        self._lives: list[_Life] = []
        self._there: dict[_Key, _Life] = {}
        self._names: Counter[_Key] = Counter()
        began = None
        for event in events:
            began = event.at if began is None else began
            self._take(event, max(0.0, (event.at - began).total_seconds()))

    def documents(self) -> list[Document]:
        """The objects in the order in which they came."""
        for life in self._lives:
            times = _times(life)
            if times:
                life.document["metadata"].setdefault("annotations", {}).update(times)
        return [life.document for life in self._lives]

    def _take(self, event: RecordedEvent, at: float) -> None:
        key, document = _key(event.document), event.document
        life = self._there.get(key)
        if event.verb is Verb.DELETE:
            if life is not None:
                del self._there[key]
                life.over_at = at if life.over_at is None else life.over_at
            return
        if life is None:
            life = self._there[key] = _Life(document, at)
            self._lives.append(life)
            self._name(key, document)
            if document["kind"] == "Pod" and not _node_of(document):
                document.pop("status", None)
        if document["kind"] == "Pod":
            _follow(life, document, at)

    def _name(self, key: _Key, document: Document) -> None:
        """Give an object a name of its own."""
        metadata = document["metadata"]
        name, number = metadata["name"], self._names[key]
        if number:
            while self._names[made := (*key[:3], f"{name}-{number}")]:
                number += 1
            self._names[made] += 1
            metadata["name"] = made[3]
        self._names[key] = number + 1


def _follow(life: _Life, document: Document, at: float) -> None:
    status = document.get("status") or {}
    if life.bound is None and _node_of(document):
        life.bound = at
    elif life.bound is None and life.document is not document:
        _still_waits(life, document, at)
    conditions = status.get("conditions") or ()
    life.evicted |= any(each.get("type") == _EVICTED and each.get("status") == "True" for each in conditions)
    if life.over_at is None and status.get("phase") in _ENDED:
        life.over_at = at


def _still_waits(life: _Life, document: Document, at: float) -> None:
    """Take over what changed of a pod before it was decided on."""
    gates = [(each.get("spec") or {}).get("schedulingGates") for each in (life.document, document)]
    if gates[0] and not gates[1]:
        life.came = at
    document.pop("status", None)
    document["metadata"]["name"] = life.document["metadata"]["name"]
    life.document = document


def _times(life: _Life) -> dict[str, str]:
    found = {ARRIVAL: life.came} if life.came and life.document["kind"] in ("Node", "Pod") else {}
    if life.document["kind"] == "Node" and life.over_at is not None:
        found[DURATION] = life.over_at - life.came
    if life.document["kind"] == "Pod" and life.over_at is not None and not life.evicted:
        found |= {DEPARTURE: life.over_at} if life.bound is None else {DURATION: life.over_at - life.bound}
    return {name: str(round(max(0.0, seconds), 6)) for name, seconds in found.items()}


def _node_of(document: Document) -> str:
    name: str = (document.get("spec") or {}).get("nodeName") or ""
    return name


def _key(document: Document) -> _Key:
    metadata = document["metadata"]
    group = document["apiVersion"].rpartition("/")[0]
    return group, document["kind"], metadata.get("namespace") or "", metadata.get("name") or ""
