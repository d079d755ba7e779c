"""What the answers of a verification have shown, and what no sample made the plugin do.

A check compares a plugin's answers with one another, so it shows little of a plugin that lets every pod pass
and scores all nodes alike: then the report says so.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from berth.snapshot.columns.growing import Mask
from berth_plugin_proto import common_pb2, group_pb2, identity_pb2, scheduling_pb2

GIVE = "give pods and nodes with --pods and --nodes"


class Behaviour(NamedTuple):
    """Something that a plugin with this extension point does, and how it shows in an answer to `call`."""

    call: str
    shows: Callable[[Any], bool]
    text: str


def _rejects(response: scheduling_pb2.FilterResponse) -> bool:
    verdicts = response.verdicts
    alone = response.status.code not in (common_pb2.CODE_SUCCESS, common_pb2.CODE_SKIP)
    return alone or bool(verdicts.all) or any(verdicts.each)


def _passes(response: scheduling_pb2.FilterResponse) -> bool:
    if response.status.code == common_pb2.CODE_SKIP:
        return True
    verdicts = response.verdicts
    each = verdicts.WhichOneof("codes") == "each"
    return response.status.code == common_pb2.CODE_SUCCESS and (
        0 in verdicts.each if each else not verdicts.all
    )


def _prefers(response: scheduling_pb2.ScoreResponse) -> bool:
    form = response.scores.WhichOneof("values")
    if form in (None, "all"):
        return False
    width = {"uint8": 1, "int32": 4, "int64": 8}[form]
    entries = np.frombuffer(getattr(response.scores, form), np.uint8)
    return entries.size % width == 0 and len(np.unique(entries.reshape(-1, width), axis=0)) > 1


def _succeeds(response: Any) -> bool:
    return bool(response.status.code == common_pb2.CODE_SUCCESS)


def _refuses(response: Any) -> bool:
    return response.status.code not in (
        common_pb2.CODE_SUCCESS,
        common_pb2.CODE_SKIP,
        common_pb2.CODE_WAIT,
    )


def _waits(response: scheduling_pb2.PermitResponse) -> bool:
    return bool(response.status.code == common_pb2.CODE_WAIT)


def _goes(response: group_pb2.PlacementFeasibleResponse) -> bool:
    return any(each.code == common_pb2.CODE_SUCCESS for each in response.verdicts)


def _queues(table: Mask) -> bool:
    return bool(table.any())


def _leaves(table: Mask) -> bool:
    return not table.all()


BEHAVIOURS = (
    Behaviour("PreEnqueue", _refuses, f"PreEnqueue held no pod back: {GIVE}"),
    Behaviour("Filter", _rejects, f"Filter turned no pod down on any node: {GIVE}"),
    Behaviour("Filter", _passes, f"Filter let no pod pass on any node: {GIVE}"),
    Behaviour("Score", _prefers, f"Score preferred no node to another for any pod: {GIVE}"),
    Behaviour("PostFilter", _succeeds, f"PostFilter made room for no pod: {GIVE}"),
    Behaviour("Reserve", _succeeds, f"Reserve accepted no pod: {GIVE}"),
    Behaviour("Permit", _waits, f"Permit made no pod wait: {GIVE}"),
    Behaviour("GeneratePlacements", _succeeds, f"no pod group was given a placement: {GIVE}"),
    Behaviour("PlacementFeasible", _goes, f"PlacementFeasible let no pod group go: {GIVE}"),
    Behaviour("PodGroupPostFilter", _succeeds, f"PodGroupPostFilter made room for no pod group: {GIVE}"),
    Behaviour("QueueingHints", _queues, "QueueingHints queued no pod for any event"),
    Behaviour("QueueingHints", _leaves, "QueueingHints left no pod waiting for any event"),
)


class TriedAnswers:
    """What one plugin was seen to do."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._shown: set[Behaviour] = set()
        self.kinds: set[str] = set()
        """Watched kinds of which an object was shown."""

    def answered(self, call: str, response: Any) -> None:
        """Take note of an answer; of QueueingHints' it is the table that the answer stands for."""
        self._asked.add(call)
        for each in BEHAVIOURS:
            if each.call == call and each not in self._shown and each.shows(response):
                self._shown.add(each)

    def lacks(self, capabilities: identity_pb2.Capabilities) -> Iterator[str]:
        """Yield, in a line each, what was asked about and never seen."""
        for each in BEHAVIOURS:
            if each.call in self._asked and each not in self._shown:
                yield each.text
        for kind in capabilities.state.resources:
            if self._asked and kind.resource not in self.kinds:
                name = ".".join(filter(None, (kind.resource, kind.version, kind.group)))
                yield f"no object of {name} was shown: give some with --objects"
