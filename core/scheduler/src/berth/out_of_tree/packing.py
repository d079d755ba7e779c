"""Decodes and validates the protocol's vectors.

Source: proto/berth/plugin/v1/scheduling.proto; docs/protocol.md "Vectors".
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import MAX_NODE_SCORE, MIN_NODE_SCORE, Scores
from berth.framework.queueing.queued_pod import KEY_PARTS, NO_KEY, SortKey
from berth.framework.status import Code, Status
from berth.out_of_tree.errors import PluginFailedError, ProtocolError
from berth.out_of_tree.limits import REASON_BYTES, STATUS_REASONS, TABLE_BYTES
from berth.out_of_tree.plugin_text import bounded
from berth.snapshot.columns.growing import Mask, Rows
from berth_plugin_proto import common_pb2, queueing_pb2, scheduling_pb2

ReasonBytes = NDArray[np.uint8]

_CODES: Mapping[int, Code] = {
    common_pb2.CODE_SUCCESS: Code.SUCCESS,
    common_pb2.CODE_ERROR: Code.ERROR,
    common_pb2.CODE_UNSCHEDULABLE: Code.UNSCHEDULABLE,
    common_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE: Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    common_pb2.CODE_WAIT: Code.WAIT,
    common_pb2.CODE_SKIP: Code.SKIP,
    common_pb2.CODE_PENDING: Code.PENDING,
}
_TURNED_DOWN = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE})
_WITHOUT_REASON = frozenset({Code.SUCCESS, Code.SKIP, Code.WAIT})
_MAX_REASONS = 255
_INDEX = np.dtype("<u4")
LISTED_SHARE = 4
"""Where at most one node in so many is asked about, a list takes fewer bytes than a bitmap."""
_MAX_SCORE = np.iinfo(np.int64).max // MAX_NODE_SCORE
_WIDTHS: dict[str, np.dtype[Any]] = {
    "uint8": np.dtype("u1"),
    "int32": np.dtype("<i4"),
    "int64": np.dtype("<i8"),
}


def status_of(plugin: str, status: common_pb2.Status) -> Status:
    """The plugin's status.

    Raises: ProtocolError where it has no code, or rejects the pod without a reason.
    """
    if not status.reasons:
        return _without_reason(plugin, status.code)
    code = _code(plugin, status.code)
    if len(status.reasons) > STATUS_REASONS:
        text = f"status {code} with {len(status.reasons)} reasons, at most {STATUS_REASONS} are read"
        raise ProtocolError(plugin, text)
    if code not in _WITHOUT_REASON and not any(status.reasons):
        raise ProtocolError(plugin, f"status {code} without a reason")
    return Status(code, tuple(bounded(reason) for reason in status.reasons), plugin)


@lru_cache(maxsize=256)
def _without_reason(plugin: str, number: int) -> Status:
    """A status without a reason, cached by plugin: most answers are that. Raises: ProtocolError."""
    code = _code(plugin, number)
    if code not in _WITHOUT_REASON:
        raise ProtocolError(plugin, f"status {code} without a reason")
    return Status(code, (), plugin)


def _code(plugin: str, number: int) -> Code:
    code = _CODES.get(number)
    if code is None:
        raise ProtocolError(plugin, f"status code {number} means nothing")
    return code


def candidates_of(rows: Rows, n: int, *, listed: bool) -> scheduling_pb2.Candidates | None:
    """The candidates among n nodes, as a list if that makes the response smaller; None for all nodes."""
    if rows.size == n:
        return None
    if listed and rows.size * LISTED_SHARE <= n:
        return scheduling_pb2.Candidates(indices=rows.astype(_INDEX).tobytes())
    return scheduling_pb2.Candidates(bitmap=bitmap(rows, n))


def bitmap(rows: Rows, n: int) -> bytes:
    """One bit for each of n nodes, set for those rows."""
    asked = np.zeros(n, dtype=bool)
    asked[rows] = True
    return np.packbits(asked, bitorder="little").tobytes()


def verdicts_of(
    plugin: str, verdicts: scheduling_pb2.Verdicts, n: int, asked: Rows | None = None
) -> tuple[ReasonBytes, tuple[Status, ...]]:
    """The reason codes of the requested nodes among n, and the statuses of the codes from 1 on.

    Shapes: codes uint8 (n,). Raises: ProtocolError.
    """
    count = len(verdicts.reasons)
    if count > _MAX_REASONS:
        raise ProtocolError(plugin, f"{count} reasons, at most {_MAX_REASONS} can be numbered")
    most = min(REASON_BYTES, TABLE_BYTES // max(count, 1))
    table = tuple(_reason(plugin, reason, most) for reason in verdicts.reasons)
    if verdicts.WhichOneof("codes") == "all":
        if verdicts.all > len(table):
            raise ProtocolError(plugin, f"reason code {verdicts.all} is not in the table of {len(table)}")
        return np.full(n, verdicts.all, dtype=np.uint8), table
    codes = np.frombuffer(verdicts.each, dtype=np.uint8)
    if codes.size != n:
        raise ProtocolError(plugin, f"{codes.size} verdicts for {n} nodes")
    among = codes if asked is None else codes[asked]
    highest = among.item(0) if among.size == 1 else int(among.max(initial=0))
    if highest > len(table):
        raise ProtocolError(plugin, f"reason code {highest} is not in the table of {len(table)}")
    return codes, table


def _reason(plugin: str, reason: common_pb2.Reason, max_bytes: int) -> Status:
    if len(text := reason.text) <= REASON_BYTES == max_bytes:
        return _known_reason(plugin, reason.code, text)
    return _read_reason(plugin, reason.code, text, max_bytes)


@lru_cache(maxsize=256)
def _known_reason(plugin: str, number: int, text: str) -> Status:
    """The status of a reason; cached, as plugins repeat their reasons. Raises: ProtocolError."""
    return _read_reason(plugin, number, text, REASON_BYTES)


def _read_reason(plugin: str, number: int, text: str, max_bytes: int) -> Status:
    code = _CODES.get(number)
    if code not in _TURNED_DOWN or not text:
        raise ProtocolError(plugin, "a reason needs a text and an unschedulable code")
    return Status(code, (bounded(text, max_bytes),), plugin)


def scores_of(plugin: str, scores: scheduling_pb2.Scores, n: int) -> Scores:
    """Raw scores for n nodes.

    Shapes: result int64 (n,). Raises: ProtocolError.
    """
    form = scores.WhichOneof("values")
    if form is None:
        raise ProtocolError(plugin, "scores without values")
    if form == "all":
        return np.full(n, scores.all, dtype=np.int64)
    data = getattr(scores, form)
    width = _WIDTHS[form]
    if len(data) != n * width.itemsize:
        raise ProtocolError(plugin, f"{len(data)} bytes of {form} scores for {n} nodes")
    return np.frombuffer(data, dtype=width).astype(np.int64)


def normalized(plugin: str, scores: Scores, how: int) -> Scores:
    """The feasible nodes' scores, normalized to 0 to 100 as the plugin announced.

    Shapes: scores and result int64 (k,). Raises: ProtocolError where they cannot be.
    """
    if not scores.size:
        return scores
    low, high = int(scores.min()), int(scores.max())
    if how == scheduling_pb2.NORMALIZATION_NONE:
        if low < MIN_NODE_SCORE or high > MAX_NODE_SCORE:
            outside = low if low < MIN_NODE_SCORE else high
            raise ProtocolError(plugin, f"score {outside} is not in 0 to 100")
        return scores
    if how == scheduling_pb2.NORMALIZATION_MIN_MAX:
        spread = high - low
        _check_size(plugin, spread)
        return (scores - low) * MAX_NODE_SCORE // spread if spread else np.zeros_like(scores)
    if how not in (scheduling_pb2.NORMALIZATION_MAX, scheduling_pb2.NORMALIZATION_MAX_REVERSE):
        raise ProtocolError(plugin, f"normalization {how} means nothing")
    if low < 0:
        raise ProtocolError(plugin, f"score {low} is negative where the highest is to become 100")
    _check_size(plugin, high)
    scaled = scores * MAX_NODE_SCORE // high if high else np.zeros_like(scores)
    return scaled if how == scheduling_pb2.NORMALIZATION_MAX else MAX_NODE_SCORE - scaled


def _check_size(plugin: str, number: int) -> None:
    if number > _MAX_SCORE:
        raise ProtocolError(plugin, f"scores up to {number} are too large to be mapped to 0 to 100")


def hints_of(plugin: str, response: queueing_pb2.QueueingHintsResponse, events: int, pods: int) -> Mask:
    """The hints: True where the event should requeue the pod.

    Shapes: result bool (events, pods). Raises: ProtocolError.
    """
    if response.HasField("matrix"):
        if response.hints:
            raise ProtocolError(plugin, "gives both hints and a matrix")
        width = (pods + 7) // 8
        if len(response.matrix) != events * width:
            raise ProtocolError(plugin, f"{len(response.matrix)} bytes of hints for {events} x {pods}")
        packed = np.frombuffer(response.matrix, dtype=np.uint8).reshape(events, width)
        return np.unpackbits(packed, axis=1, count=pods, bitorder="little").astype(bool)
    if len(response.hints) != events:
        raise ProtocolError(plugin, f"{len(response.hints)} hints for {events} events")
    return np.array([_hint(plugin, hint, pods) for hint in response.hints], dtype=bool).reshape(events, pods)


def _hint(plugin: str, hint: queueing_pb2.Hint, pods: int) -> Mask:
    match hint.WhichOneof("queue"):
        case "all":
            return np.full(pods, hint.all)
        case "pods":
            return bits_of(plugin, hint.pods, pods)
        case "listed":
            if len(hint.listed.columns) > pods:
                raise ProtocolError(plugin, f"{len(hint.listed.columns)} listed columns of {pods} pods")
            columns = list(hint.listed.columns)
            if columns != sorted(set(columns)) or (columns and columns[-1] >= pods):
                raise ProtocolError(
                    plugin, f"listed columns of {pods} pods that are not ascending, or not there"
                )
            queued = np.zeros(pods, dtype=bool)
            queued[columns] = True
            return queued
    raise ProtocolError(plugin, "a hint without an answer")


def sort_keys_of(plugin: str, keys: Sequence[queueing_pb2.SortKey], pods: int) -> list[SortKey]:
    """The sort keys of that many pods, missing parts as 0. Raises: ProtocolError."""
    if len(keys) != pods:
        raise ProtocolError(plugin, f"{len(keys)} sort keys for {pods} pods")
    if (longest := max((len(key.parts) for key in keys), default=0)) > KEY_PARTS:
        raise ProtocolError(plugin, f"a sort key of {longest} parts, at most {KEY_PARTS} are compared")
    return [(*key.parts, *NO_KEY[len(key.parts) :]) for key in keys]


def bits_of(plugin: str, data: bytes, n: int) -> Mask:
    """A bitmap. Shapes: result bool (n,). Raises: ProtocolError where it has another length."""
    if len(data) != (n + 7) // 8:
        raise ProtocolError(plugin, f"{len(data)} bytes of bitmap for {n} entries")
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=n, bitorder="little").astype(bool)


def succeeded(plugin: str, call: str, status: Status) -> None:
    """Raises: PluginFailedError for the code Error, or one that is not allowed at this extension point."""
    if not status.ok:
        raise PluginFailedError(plugin, f"{call} says {status.code}: {status.message}")
