"""What one plugin in another process said in one attempt, and which version of it is to be asked on.

Source: docs/protocol.md "Scheduling calls".
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.config.sidecars import FailurePolicy
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.interface import Plugin, ReasonCodes, Scores
from berth.framework.status import SUCCESS, Status, failed
from berth.objects.pod import Pod
from berth.out_of_tree._generated import identity_pb2, scheduling_pb2
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.connection import Connection
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.limits import CYCLE_REASONS
from berth.out_of_tree.metadata_patch import MetadataPatch
from berth.out_of_tree.packing import bitmap
from berth.out_of_tree.standing import Standing
from berth.snapshot.columns import Rows

FILTER = identity_pb2.EXTENSION_POINT_FILTER
RESERVE = identity_pb2.EXTENSION_POINT_RESERVE
PRE_ENQUEUE = identity_pb2.EXTENSION_POINT_PRE_ENQUEUE


@dataclass(slots=True)
class Answers:
    """What the plugin said of one pod in one cycle, over the rows of the whole snapshot."""

    caller: Caller
    """The version of the plugin that the attempt began with."""
    excused: bool = False
    """The attempt began after the plugin was told to leave: it has no say in it."""
    in_part: bool = False
    """Only the rows of a table are asked about, each table anew; earlier answers tell of the others."""
    asked: Rows | None = None
    """The rows that the answers are about, None for all."""
    failed: bool = False
    """Some answer is missing, whatever the failure policy made of that."""
    codes: ReasonCodes | None = None
    reasons: tuple[Status, ...] = ()
    scores: scheduling_pb2.ScoreResponse | None = None
    failure: SidecarError | None = None
    """What went wrong where Filter was to bring the scores too."""
    raw: Scores | None = None
    normalization: int = scheduling_pb2.NORMALIZATION_NONE
    reserve_sent: bool = False
    skip_pre_bind: bool = False
    metadata_patch: MetadataPatch | None = None
    shown: list[Callable[[], None]] = field(default_factory=list)
    """What takes back the patches that plugins see already."""
    reserved_on: int = 0
    """Which start of the connection answered Reserve."""

    def candidates(self, n: int) -> scheduling_pb2.Candidates | None:
        """The rows to ask about, None for all of them."""
        if self.asked is None:
            return None
        return scheduling_pb2.Candidates(bitmap=bitmap(self.asked, n))

    def covers(self, rows: Rows) -> bool:
        """Whether these few rows were asked about."""
        return self.asked is not None and set(rows.tolist()) <= set(self.asked.tolist())

    def ask_about(self, rows: Rows) -> None:
        """Ask anew, of those rows only."""
        self.codes = self.scores = self.failure = self.raw = None
        self.asked = rows

    def numbered(self, codes: ReasonCodes, reasons: tuple[Status, ...]) -> ReasonCodes:
        """The codes in the numbers of all the cycle's reasons: those given out before keep their meaning."""
        if not self.reasons:
            self.reasons = reasons
        if self.reasons[: len(reasons)] == reasons:
            return codes
        before = set(self.reasons)
        known = [*self.reasons, *dict.fromkeys(each for each in reasons if each not in before)]
        if len(known) > CYCLE_REASONS:
            text = f"brings up more than {CYCLE_REASONS} different reasons in one cycle"
            raise ProtocolError(self.caller.plugin, text)
        number = {each: i for i, each in enumerate(known, 1)}
        numbers = np.array([0, *(number[each] for each in reasons)], dtype=np.uint16)
        self.reasons = tuple(known)
        # Entries that were not asked about may hold anything.
        return numbers.take(codes, mode="clip")


class AskedElsewhere(Plugin):
    """What all extension points of a plugin in another process have in common.

    `caller` reaches its present version; an attempt stays with the version that it began with.
    """

    in_process = False

    def __init__(self, caller: Caller, handle: Handle) -> None:
        self._name = caller.plugin
        self.caller = caller
        self.changes = caller.feed.touched
        self._standing = Standing(lambda: self.caller)
        self.leaving = False
        """Whether only attempts that began with it are still its business."""
        self._handle = handle
        self._pinned: dict[tuple[str, int], Caller] = {}

    @property
    def name(self) -> str:
        """The name in the plugin list and in profiles."""
        return self._name

    def use(self, caller: Caller) -> None:
        """Begin new attempts with that version."""
        self.caller = caller
        self.changes = caller.feed.touched

    def _answers(self, state: CycleState) -> Answers:
        """What this plugin said in this cycle; each plugin of a profile has its own."""
        key = (Answers, self.name)
        known: Answers | None = state.get(key)
        if known is None:
            known = Answers(self.caller, excused=self.leaving)
            state.write(key, known)
            record = state.get(CycleRecord)
            if record is not None and record.attempt:
                self._pinned[record.pod.uid, record.attempt] = self.caller
        return known

    def release(self, record: CycleRecord) -> Caller:
        """The version that the attempt began with, which is done with it now."""
        return self._pinned.pop((record.pod.uid, record.attempt), self.caller)

    def serves(self, connection: Connection) -> int:
        """How many attempts began with the version behind that connection and have not ended."""
        return sum(caller.connection is connection for caller in self._pinned.values())

    def _offers(self, caller: Caller, point: int) -> bool:
        """Whether to call it.

        A plugin that never answered is called where the list says so, and fails; but to hold pods back at its
        gate is of no use where they are turned down at its filter, which users get to read.
        """
        connection = caller.connection
        if connection.starts:
            return connection.offers(point)
        if point == PRE_ENQUEUE:
            return connection.spec.policy_at(ExtensionPoint.FILTER) is FailurePolicy.IGNORE
        return point in (FILTER, RESERVE)

    def _ignored(self, caller: Caller, point: ExtensionPoint, pod: Pod) -> bool:
        """Whether the failure policy passes over a failure there; counts it."""
        ignored = caller.connection.spec.policy_at(point, pod) is FailurePolicy.IGNORE
        if ignored:
            caller.around.metrics.ignored(self.name, point.value)
        return ignored

    def _unless_ignored(self, caller: Caller, point: ExtensionPoint, pod: Pod, error: SidecarError) -> Status:
        return SUCCESS if self._ignored(caller, point, pod) else failed(error)
