"""Vectors on the wire: bitmaps, reason bytes, little-endian scores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth_plugin_proto import common_pb2, queueing_pb2, scheduling_pb2
from berth_sdk.errors import ContractError
from berth_sdk.outcomes import Codes, Normalization, Points, Reason, Scores, SortKey, Status, Verdicts

MAX_REASONS = 255
MAX_SCORE = 100
DIVIDED = frozenset({Normalization.MAX, Normalization.MAX_REVERSE})
FURTHER = Reason("further reasons, more than one answer can hold")
KEY_PARTS = 8
INDEX_BYTES = 4
INTEGERS = "iu"
"""Kinds of numpy's types."""

HIGHEST_BYTE, LOWEST_INT, HIGHEST_INT = 0xFF, -(1 << 31), (1 << 31) - 1
_LONG = np.iinfo(np.int64)


def pack_bits(mask: NDArray[np.bool_]) -> bytes:
    """Return one bit an entry, least significant first."""
    return np.packbits(mask, bitorder="little").tobytes()


def unpack_bits(bitmap: bytes, count: int) -> NDArray[np.bool_]:
    """Return the mask.

    Raises: ValueError: the bitmap is not for this many entries.
    """
    if len(bitmap) != (count + 7) // 8:
        raise ValueError(f"a bitmap of {count} entries has {(count + 7) // 8} bytes, not {len(bitmap)}")
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=count, bitorder="little")
    return bits.view(np.bool_)


def pack_indices(indices: NDArray[np.integer]) -> bytes:
    """Return four bytes an index."""
    return indices.astype("<u4").tobytes()


def unpack_indices(listed: bytes, count: int) -> NDArray[np.uint32]:
    """Return the indices.

    Raises: ValueError: they are no indices of this many entries in ascending order.
    """
    if len(listed) % INDEX_BYTES:
        raise ValueError(f"a list of indices has {INDEX_BYTES} bytes for each, not {len(listed)} in all")
    indices = np.frombuffer(listed, "<u4")
    if (indices[1:] <= indices[:-1]).any():
        raise ValueError("a list of indices ascends, and names none of them twice")
    if len(indices) and indices[-1] >= count:
        raise ValueError(f"index {indices[-1]} is listed, of {count}")
    return indices


def numbered(table: dict[Reason, int], answer: Any) -> int:
    """Return the code of a reason, with a place of its own in the table as long as there is one.

    Raises: ContractError: it is no reason.
    """
    reason = Reason(answer) if isinstance(answer, str) else answer
    if not isinstance(reason, Reason):
        raise ContractError(f"filter answers None, a text or a Reason, not {answer!r}")
    if len(table) == MAX_REASONS - 1 and reason not in table:
        reason = FURTHER
    return table.setdefault(reason, len(table) + 1)


def verdicts_of(answer: Codes | Verdicts, reasons: tuple[Reason, ...], count: int) -> Verdicts:
    """Return what a vector filter answered as codes with their table.

    Raises: ContractError: wrong shape, a code without a reason, or too many reasons.
    """
    if not isinstance(answer, Verdicts | np.ndarray):
        raise ContractError(f"expected an array of {count} codes, got {type(answer).__name__}")
    if isinstance(answer, Verdicts):
        codes, reasons = answer.codes, answer.reasons
    elif answer.dtype == np.bool_:
        codes = np.logical_not(answer).view(np.uint8)
    else:
        codes = answer.astype(np.uint8, copy=False)
    if codes.shape != (count,) or codes.dtype != np.uint8:
        raise ContractError(f"expected {count} codes of uint8, got {codes.dtype} {codes.shape}")
    if len(reasons) > MAX_REASONS:
        raise ContractError(f"{len(reasons)} reasons, at most {MAX_REASONS} fit into a code")
    return Verdicts(codes, reasons)


def pack_verdicts(verdicts: Verdicts, candidates: NDArray[np.bool_] | None) -> scheduling_pb2.Verdicts:
    """Return the message; what was not asked is sent as 0.

    Raises: ContractError: a code of a candidate points past the table.
    """
    codes = verdicts.codes if candidates is None else np.where(candidates, verdicts.codes, np.uint8(0))
    highest = np.maximum.reduce(codes, initial=0)
    if highest > len(verdicts.reasons):
        raise ContractError(f"code {highest} has no reason: there are {len(verdicts.reasons)}")
    if not highest:
        return scheduling_pb2.Verdicts(all=0)
    message = scheduling_pb2.Verdicts(each=codes.tobytes())
    for reason in verdicts.reasons:
        message.reasons.add(code=reason.code._value_, text=reason.text)
    return message


def unpack_verdicts(message: scheduling_pb2.Verdicts, reasons: tuple[Reason, ...], count: int) -> Verdicts:
    """Return the codes with the table given.

    Raises: ValueError: the message is not for this many nodes.
    """
    codes = np.full(count, message.all, np.uint8)
    if message.WhichOneof("codes") == "each":
        codes = np.frombuffer(message.each, np.uint8)
    if len(codes) != count:
        raise ValueError(f"{len(codes)} codes for {count} nodes")
    return Verdicts(codes, reasons)


def checked(points: Points, count: int) -> Points:
    """Return the scores, which are this many.

    Raises: ContractError: wrong shape or type.
    """
    if not isinstance(points, np.ndarray):
        raise ContractError(f"expected an array of {count} integers, got {type(points).__name__}")
    if points.shape != (count,) or points.dtype.kind not in INTEGERS:
        raise ContractError(f"expected {count} integers, got {points.dtype} {points.shape}")
    return points


def pack_scores(answer: Scores, candidates: NDArray[np.bool_] | None, count: int) -> scheduling_pb2.Scores:
    """Return the message in the narrowest form; what was not asked is sent as 0.

    Raises: ContractError: wrong shape or type, or out of range for the normalization.
    """
    message = scheduling_pb2.Scores()
    fill_scores(message, answer, candidates, count)
    return message


def fill_scores(
    message: scheduling_pb2.Scores, answer: Scores, candidates: NDArray[np.bool_] | None, count: int
) -> None:
    """Write the scores into an empty message, as `pack_scores` does: a message within another is not copied.

    Raises: ContractError: wrong shape or type, or out of range for the normalization.
    """
    points, normalization = checked(answer.points, count), answer.normalization
    low, high = _range(points)
    if candidates is not None and (low < 0 or high > MAX_SCORE):
        # What was not asked about may be anything. Within 0 to 100 it changes nothing below, and is cleared
        # in the narrow form, which is quicker.
        points, candidates = np.where(candidates, points, 0), None
        low, high = _range(points)
    if high > _LONG.max:
        raise ContractError(f"a score is an integer of 64 bits, not {high}")
    if normalization is Normalization.NONE and (low < 0 or high > MAX_SCORE):
        raise ContractError(
            f"scores from {low} to {high} without normalization: 0 to {MAX_SCORE} is the range"
        )
    if normalization in DIVIDED and low < 0:
        raise ContractError(f"scores from {low}: they must not be negative to be divided by the highest")
    message.normalization = normalization._value_
    if low >= 0 and high <= HIGHEST_BYTE:
        narrow = points.astype(np.uint8)
        if candidates is not None:
            narrow *= candidates.view(np.uint8)
        message.uint8 = narrow.tobytes()
    elif low >= LOWEST_INT and high <= HIGHEST_INT:
        message.int32 = points.astype("<i4").tobytes()
    else:
        message.int64 = points.astype("<i8").tobytes()


def _range(points: Points) -> tuple[int, int]:
    """Return the lowest and the highest of the scores and 0."""
    if points.dtype == np.int64:
        # One pass where all fit into a byte, as they mostly do: taken as unsigned, a negative one is high.
        highest = int(np.maximum.reduce(points.view(np.uint64), initial=0))
        if highest <= HIGHEST_BYTE:
            return 0, highest
    return int(np.minimum.reduce(points, initial=0)), int(np.maximum.reduce(points, initial=0))


def unpack_scores(message: scheduling_pb2.Scores, count: int) -> NDArray[np.int64]:
    """Return the raw scores.

    Raises: ValueError: the message is not for this many nodes, or says nothing.
    """
    form = message.WhichOneof("values")
    if form is None:
        raise ValueError("scores without values")
    if form == "all":
        return np.full(count, message.all, np.int64)
    dtype = {"uint8": "u1", "int32": "<i4", "int64": "<i8"}[form]
    scores = np.frombuffer(getattr(message, form), dtype).astype(np.int64)
    if len(scores) != count:
        raise ValueError(f"{len(scores)} scores for {count} nodes")
    return scores


def pack_sort_key(key: SortKey) -> queueing_pb2.SortKey:
    """Return the message.

    Raises: ContractError: it is no key.
    """
    right = isinstance(key, tuple) and all(
        isinstance(part, (int, np.integer)) and _LONG.min <= part <= _LONG.max for part in key
    )
    if not right or len(key) > KEY_PARTS:
        raise ContractError(f"a sort key is a tuple of at most {KEY_PARTS} integers of 64 bits, not {key!r}")
    return queueing_pb2.SortKey(parts=[int(part) for part in key])


def pack_status(status: Status) -> common_pb2.Status:
    """Return the message."""
    return common_pb2.Status(code=status.code.value, reasons=status.reasons)
