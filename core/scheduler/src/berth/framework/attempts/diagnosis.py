"""Why no node fits: which plugin turned down which node, kept as columns and spelled out on demand.

Source: pkg/scheduler/framework/types.go Diagnosis, FitError (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from berth.framework.status import Code, Status
from berth.snapshot.columns.growing import Mask, Rows

NO_NODES_AVAILABLE = "no nodes available to schedule pods"
MAX_ITEM_BYTES = 4
SMALL = 1 << 16
"""Codes below are counted in a table."""
NOT_LOOKED_AT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@dataclass(slots=True)
class Rejections:
    """Nodes that were turned down, by the plugins that own it; diagnoses of several pods may share it.

    Shapes: rows intp (k,), row numbers of the snapshot; codes (k,), what `spell` puts into words.
    """

    rows: Rows
    codes: np.ndarray
    spell: Callable[[int], Status]
    _tally: list[tuple[int, int]] | None = field(default=None, init=False)

    def tally(self) -> list[tuple[int, int]]:
        """Each code and how many nodes have it."""
        if self._tally is None:
            self._tally = tallied(self.codes)
        return self._tally


@dataclass(slots=True)
class Diagnosis:
    """What became of every node in one cycle; `count` of them could be looked at, None for all."""

    node_names: list[str] = field(default_factory=list)
    absent: Status = NOT_LOOKED_AT
    """The status of nodes that were not looked at."""
    narrowing: Sequence[str] = ()
    """The PreFilter plugins that left them out."""
    pre_filter_message: str = ""
    post_filter_message: str = ""
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    rejections: list[Rejections] = field(default_factory=list)
    single: dict[int, Status] = field(default_factory=dict)
    """Statuses of nodes that were evaluated on their own; they overrule `rejections`."""
    count: int | None = None

    @property
    def node_count(self) -> int:
        """How many nodes the pod could have gone to."""
        return len(self.node_names) if self.count is None else self.count

    def record(self, rejections: Rejections) -> None:
        """Take note of a plugin's rejections."""
        self.rejections.append(rejections)
        for code, _ in rejections.tally():
            self.blame(rejections.spell(code))

    def blame(self, status: Status) -> None:
        """Remember the plugin that gave a rejection."""
        if status.plugin:
            self.unschedulable_plugins.add(status.plugin)
            if status.code is Code.PENDING:
                self.pending_plugins.add(status.plugin)

    def statuses(self) -> dict[int, Status]:
        """The explicit status of each row that has one."""
        found: dict[int, Status] = {}
        for rejections in self.rejections:
            spelled = {code: rejections.spell(code) for code, _ in rejections.tally()}
            for row, code in zip(rejections.rows.tolist(), rejections.codes.tolist(), strict=True):
                found[row] = spelled[code]
        return found | self.single

    def node_status(self, row: int) -> Status:
        """One node's status."""
        if row in self.single:
            return self.single[row]
        for rejections in self.rejections:
            (here,) = np.nonzero(rejections.rows == row)
            if here.size:
                return rejections.spell(int(rejections.codes[here[0]]))
        return self.absent

    def rows_with(self, code: Code) -> Mask:
        """Which nodes have a status of that code.

        Shapes: result bool (n,).
        """
        mask = np.full(len(self.node_names), self.absent.code is code)
        for rejections in self.rejections:
            meant = [kind for kind, _ in rejections.tally() if rejections.spell(kind).code is code]
            mask[rejections.rows] = np.isin(rejections.codes, meant)
        for row, status in self.single.items():
            mask[row] = status.code is code
        return mask

    def histogram(self) -> Counter[str]:
        """How many nodes gave each reason."""
        counts: Counter[str] = Counter()
        explicit = 0
        for count, status in self._groups():
            explicit += count
            for reason in status.reasons:
                counts[reason] += count
        if self.node_count > explicit:
            for reason in self.absent.reasons:
                counts[reason] += self.node_count - explicit
        return counts

    def _groups(self) -> Iterator[tuple[int, Status]]:
        for rejections in self.rejections:
            tally = rejections.tally()
            if self.single:
                tally = tallied(rejections.codes[~np.isin(rejections.rows, list(self.single))])
            for code, count in tally:
                yield count, rejections.spell(code)
        for status in self.single.values():
            yield 1, status


def distinct(codes: np.ndarray) -> list[int]:
    """Each of the codes once."""
    return [code for code, _ in tallied(codes)]


def tallied(codes: np.ndarray) -> list[tuple[int, int]]:
    """Each of the codes and how often it is there; nearly always few small numbers, which need no sorting."""
    if codes.dtype.itemsize > MAX_ITEM_BYTES or (codes.size and codes.max() >= SMALL):
        return list(Counter(codes.tolist()).items())
    counts = np.bincount(codes)
    return [(code, int(counts[code])) for code in np.flatnonzero(counts).tolist()]


class GroupFitError(Exception):
    """A pod group does not fit; the text is the one that users read, `plugins` turned it down."""

    def __init__(self, text: str, plugins: AbstractSet[str]) -> None:
        super().__init__(text)
        self.plugins = plugins


class FitError(Exception):
    """No node fits the pod; the text is the one that users read."""

    def __init__(self, diagnosis: Diagnosis, node_count: int) -> None:
        super().__init__()
        self.diagnosis = diagnosis
        self.node_count = node_count
        self._spelled: tuple[str, str] | None = None

    def __str__(self) -> str:
        after = self.diagnosis.post_filter_message
        if self._spelled is None or self._spelled[0] != after:
            self._spelled = after, self._spell()
        return self._spelled[1]

    def _spell(self) -> str:
        text = f"0/{self.node_count} nodes are available:"
        diagnosis = self.diagnosis
        if diagnosis.pre_filter_message:
            text += f" {diagnosis.pre_filter_message}."
        else:
            entries = sorted(f"{count} {reason}" for reason, count in diagnosis.histogram().items())
            if entries:
                text += f" {', '.join(entries)}."
        if diagnosis.post_filter_message:
            text += f" {diagnosis.post_filter_message}"
        return text
