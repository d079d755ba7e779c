"""What an answer means, apart from how it is packed: a text for each thing that it says something of.

A node stands under its name, so that neither the order of nodes nor that of a reason table counts; that all
nodes pass is the same as SKIP, and a pod that is turned down is one that every node turns down.

Source: docs/protocol.md "Vectors", "Scheduling calls".
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from berth.framework.interface import Placement
from berth.framework.status import Status
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.packing import bits_of, hints_of, scores_of, status_of, verdicts_of
from berth.out_of_tree.points.group_points import group_verdicts_of
from berth.out_of_tree.points.placement import placements_of
from berth.replay.rows import listed_rows
from berth.snapshot.columns.growing import Rows
from berth_plugin_proto import group_pb2, placement_pb2, queueing_pb2, scheduling_pb2

PASSES = "passes"
_PLUGIN = "replayed"


class AnswerPart(NamedTuple):
    """Something that an answer says something of; `kind` is what it says."""

    kind: str
    name: str = ""


Meaning = dict[AnswerPart, str]
Read = Callable[[Any, Any, Sequence[str]], Meaning]
STATUS = AnswerPart("status")
DECIDED = {STATUS: "SUCCESS"}
# What only the nodes that pass have, or the pods that are known, is compared where both answers have it.
WHERE_BOTH = frozenset({"scores", "normalization", "score", "hint"})


def meaning_of(request: Any, response: Any, names: Sequence[str]) -> Meaning:
    """What a response to that request of the scheduling service says; `names` are the nodes by index."""
    read: Read = _READ.get(type(request), _read_nothing)
    try:
        return read(request, response, names)
    except ProtocolError as error:
        return {STATUS: f"breaks the protocol: {str(error).removeprefix(f'plugin {_PLUGIN}: ')}"}


def _filtered(request: Any, response: scheduling_pb2.FilterResponse, names: Sequence[str]) -> Meaning:
    rows, n, entries = _asked(request, len(names))
    return _verdicts(response, [names[row] for row in rows], n, entries)


def _verdicts(response: Any, subjects: Sequence[str], n: int, entries: Rows) -> Meaning:
    """What an answer of n entries says of the subjects, whose entries these are."""
    status = status_of(_PLUGIN, response.status)
    if status.skip:
        return {**DECIDED, **{AnswerPart("node", name): PASSES for name in subjects}}
    if status.rejected:
        return {**DECIDED, **{AnswerPart("node", name): _said(status) for name in subjects}}
    if not status.ok:
        return {STATUS: _said(status)}
    if not response.HasField("verdicts"):
        raise ProtocolError(_PLUGIN, "Success and no verdicts")
    codes, table = verdicts_of(_PLUGIN, response.verdicts, n, entries)
    texts = (PASSES, *map(_said, table))
    said = zip(subjects, (texts[code] for code in codes[entries].tolist()), strict=True)
    return {**DECIDED, **{AnswerPart("node", name): text for name, text in said}}


def _scored(request: Any, response: scheduling_pb2.ScoreResponse, names: Sequence[str]) -> Meaning:
    status = status_of(_PLUGIN, response.status)
    rows, n, entries = _asked(request, len(names))
    if status.skip:
        scores, how = np.zeros(n, dtype=np.int64), scheduling_pb2.NORMALIZATION_NONE
    elif status.ok:
        scores = scores_of(_PLUGIN, response.scores, n)
        how = response.scores.normalization
    else:
        return {AnswerPart("scores"): _said(status)}
    found = {AnswerPart("score", names[row]): str(score) for row, score in _by_row(rows, scores[entries])}
    name = scheduling_pb2.Normalization.Name(how)
    return {AnswerPart("scores"): "SUCCESS", AnswerPart("normalization"): name, **found}


def _by_row(rows: Rows, values: Any) -> Iterable[tuple[int, int]]:
    return zip(rows.tolist(), values.tolist(), strict=True)


def _filtered_and_scored(
    request: Any, response: scheduling_pb2.FilterScoreResponse, names: Sequence[str]
) -> Meaning:
    """Scores count on nodes that pass only."""
    verdicts = _filtered(request, response.filter, names)
    if not response.HasField("score"):
        return verdicts
    passing = {subject.name for subject, text in verdicts.items() if text == PASSES}
    scores = _scored(request, response.score, names)
    kept = {key: text for key, text in scores.items() if key.kind != "score" or key.name in passing}
    return {**verdicts, **kept} if passing else verdicts


def _overlaid(request: scheduling_pb2.FilterOverlaysRequest, response: Any, names: Sequence[str]) -> Meaning:
    n = len(request.overlays)
    subjects = [f"{names[each.node_index]} (overlay {i})" for i, each in enumerate(request.overlays)]
    return _verdicts(response, subjects, n, np.arange(n))


def _post_filtered(_request: Any, response: scheduling_pb2.PostFilterResponse, _names: Any) -> Meaning:
    victims = ", ".join(sorted(response.victim_uids))
    nominated = response.nominated_node_name if response.HasField("nominated_node_name") else "(as before)"
    return {**_of_status(response), AnswerPart("nominated node"): nominated, AnswerPart("victims"): victims}


def _reserved(_request: Any, response: scheduling_pb2.ReserveResponse, _names: Any) -> Meaning:
    skips = str(response.skip_pre_bind).lower()
    return {**_of_status(response), AnswerPart("skip_pre_bind"): skips, **_patch(response)}


def _permitted(_request: Any, response: scheduling_pb2.PermitResponse, _names: Any) -> Meaning:
    seconds = response.timeout.seconds + response.timeout.nanos / 1e9
    waits = {AnswerPart("timeout"): f"{seconds:g} s"} if response.HasField("timeout") else {}
    return {**_of_status(response), **waits}


def _pre_bound(_request: Any, response: scheduling_pb2.PreBindResponse, _names: Any) -> Meaning:
    return {**_of_status(response), **_patch(response)}


def _placed(
    request: placement_pb2.GeneratePlacementsRequest,
    response: placement_pb2.GeneratePlacementsResponse,
    names: Sequence[str],
) -> Meaning:
    """The placements in the order in which they are tried, and the nodes of each."""
    status = status_of(_PLUGIN, response.status)
    if not status.ok:
        return {STATUS: _said(status)}
    parent = Placement("", _asked(request, len(names)).rows)
    found = list(placements_of(_PLUGIN, response, parent, len(names)))
    nodes = {AnswerPart("placement", each.name): ", ".join(names[row] for row in each.rows) for each in found}
    return {**DECIDED, AnswerPart("placements"): ", ".join(each.name for each in found), **nodes}


def _placements_scored(
    request: placement_pb2.ScorePlacementsRequest,
    response: placement_pb2.ScorePlacementsResponse,
    _names: Any,
) -> Meaning:
    status = status_of(_PLUGIN, response.status)
    if not status.ok:
        return {AnswerPart("scores"): _said(status)}
    scores = scores_of(_PLUGIN, response.scores, len(request.proposed)).tolist()
    proposed = zip(request.proposed, scores, strict=True)
    found = {AnswerPart("score", each.placement.name): str(score) for each, score in proposed}
    name = scheduling_pb2.Normalization.Name(response.scores.normalization)
    return {AnswerPart("scores"): "SUCCESS", AnswerPart("normalization"): name, **found}


def _judged(
    request: group_pb2.PlacementFeasibleRequest,
    response: group_pb2.PlacementFeasibleResponse,
    _names: Any,
) -> Meaning:
    found = group_verdicts_of(_PLUGIN, len(request.progress), response)
    return {
        AnswerPart("verdict", f"{each.scheduled} scheduled, {each.remaining} remaining"): _said(status)
        for each, status in zip(request.progress, found, strict=True)
    }


def _post_filtered_group(
    _request: Any, response: group_pb2.PodGroupPostFilterResponse, _names: Any
) -> Meaning:
    sets = {
        AnswerPart("victims", f"of proposal {number}"): ", ".join(sorted(each.victim_uids))
        for number, each in enumerate(response.proposals)
    }
    return {**_of_status(response), **sets}


def _read_status(_request: Any, response: Any, _names: Any) -> Meaning:
    return _of_status(response)


def _read_nothing(_request: Any, _response: Any, _names: Any) -> Meaning:
    return {}


_READ: Mapping[type, Read] = {
    scheduling_pb2.PreEnqueueRequest: _read_status,
    scheduling_pb2.FilterRequest: _filtered,
    scheduling_pb2.ScoreRequest: _scored,
    scheduling_pb2.FilterScoreRequest: _filtered_and_scored,
    scheduling_pb2.FilterOverlaysRequest: _overlaid,
    scheduling_pb2.PostFilterRequest: _post_filtered,
    scheduling_pb2.ReserveRequest: _reserved,
    scheduling_pb2.PermitRequest: _permitted,
    scheduling_pb2.PreBindRequest: _pre_bound,
    scheduling_pb2.BindRequest: _read_status,
    placement_pb2.GeneratePlacementsRequest: _placed,
    placement_pb2.ScorePlacementsRequest: _placements_scored,
    group_pb2.PlacementFeasibleRequest: _judged,
    group_pb2.PodGroupPostFilterRequest: _post_filtered_group,
}


def hints_meaning(
    request: queueing_pb2.QueueingHintsRequest, response: queueing_pb2.QueueingHintsResponse
) -> Meaning:
    """Which event queues which pod; nothing of pods that the plugin did not know."""
    count = len(request.pods)
    try:
        table = hints_of(_PLUGIN, response, len(request.events), count)
        known = np.ones(count, dtype=bool)
        if response.HasField("unknown_pods"):
            known = ~bits_of(_PLUGIN, response.unknown_pods, count)
    except ProtocolError as error:
        return {STATUS: f"breaks the protocol: {error}"}
    return {
        AnswerPart("hint", f"event {i} ({event.resource}), pod {pod.uid}"): "queue"
        if table[i, j]
        else "leave"
        for i, event in enumerate(request.events)
        for j, pod in enumerate(request.pods)
        if known[j]
    }


class _Asked(NamedTuple):
    """The rows that a request asks about, how many entries a vector of its answer has, and which are theirs.

    Shapes: rows and entries intp (k,).
    """

    rows: Rows
    n: int
    entries: Rows


def _asked(request: Any, n: int) -> _Asked:
    """What a request about n nodes asks about. Raises: ProtocolError."""
    every = np.arange(n)
    if not request.HasField("candidates"):
        return _Asked(every, n, every)
    if not request.candidates.HasField("indices"):
        rows = np.flatnonzero(bits_of(_PLUGIN, request.candidates.bitmap, n))
        return _Asked(rows, n, rows)
    rows = listed_rows(request.candidates)
    if rows.max(initial=-1) >= n:
        raise ProtocolError(_PLUGIN, f"index {rows.max()} of {n} nodes is listed")
    return _Asked(rows, rows.size, np.arange(rows.size))


def _of_status(response: Any) -> Meaning:
    return {STATUS: _said(status_of(_PLUGIN, response.status))}


def _said(status: Status) -> str:
    code = status.code.name
    return f"{code}: {'; '.join(status.reasons)}" if status.reasons else code


def _patch(response: Any) -> Meaning:
    """The metadata patch, whatever the order of its keys."""
    if not response.HasField("metadata_patch"):
        return {AnswerPart("metadata patch"): "none"}
    try:
        text = json.dumps(json.loads(response.metadata_patch), sort_keys=True)
    except ValueError:
        text = f"no JSON: {response.metadata_patch!r}"
    return {AnswerPart("metadata patch"): text}
