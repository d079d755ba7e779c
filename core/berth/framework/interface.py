"""The contracts of every extension point.

A plugin is a class with upstream's name; it implements the points it extends by inheriting from the classes
below. Filter and score answer for all nodes of a table at once. A method of an in-tree plugin returns its
answer; one that has to ask another process may return an awaitable of it.

The way of a pod: pre_enqueue - less - pre_filter - filter - (post_filter) - pre_score - score -
normalize_score - reserve - permit - pre_bind_pre_flight - pre_bind - bind - post_bind.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go (Kubernetes v1.36).
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cmp_to_key
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.cycle_state import CycleState
from berth.framework.queued_pod import QueuedPodInfo, SortKey
from berth.framework.status import SUCCESS, Code, Status
from berth.objects.pod import Pod
from berth.objects.pod_groups import PodGroup
from berth.snapshot.columns import Mask, Rows
from berth.snapshot.journal import Journal
from berth.snapshot.pod_group_states import GroupKey
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

ReasonCodes = NDArray[np.unsignedinteger[Any]]
"""(n,), 0 where the node passes; other numbers mean what the plugin's `filter_status` says."""

Scores = NDArray[np.int64]
"""(n,), raw before and 0 to 100 after normalising."""

UNASKED = -(1 << 63)
"""What the scalar form of a plugin in another process gives for a row that it is to be asked about first."""

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]


class Reason(NamedTuple):
    """Why a node is turned down: upstream's text, and whether evicting pods could help."""

    text: str
    code: Code = Code.UNSCHEDULABLE


class Depends(Enum):
    """What a plugin's raw answer for a node depends on, besides the pod.

    OBJECT: on what the API server says of nodes, never on the pods that are on them. NODE: on that node's own
    row, pods included, and nothing else. CLUSTER: on other nodes' pods, too, or on other objects.
    """

    OBJECT = "object"
    NODE = "node"
    CLUSTER = "cluster"


class Plugin(ABC):  # noqa: B024 - the points below are what is abstract
    """Anything that a profile can name."""

    in_process: ClassVar[bool] = True
    """Whether the answers come from this process and can be trusted to keep to the contract."""

    depends: ClassVar[Depends] = Depends.CLUSTER
    """Whoever says less than CLUSTER also says this: what `pre_filter` and `pre_score` answer, and leave in
    the cycle's state, depends on the pod alone and is not changed later. Equal pods share it."""

    basis_of_pod: ClassVar[bool] = False
    """Whether `basis` reads the pod alone, and so is always the same for pods of one signature."""

    basis_of_answers: ClassVar[bool] = False
    """Whether `basis` may become another one by what is answered in the cycle, and is looked at after it."""

    changes: Journal[str] | None = None
    """The nodes, by name, for which answers changed although nothing did that the snapshot shows."""

    @property
    def name(self) -> str:
        """The name in KubeSchedulerConfiguration."""
        return type(self).__name__

    def sign_pod(self, pod: Pod) -> Hashable | None:
        """All that this plugin's verdicts and scores read of the pod; None where it cannot be said.

        Two pods of one profile that every plugin signs alike are one question. It reads the pod alone: what
        else an answer hangs on belongs to `basis`.
        """
        del pod
        return None

    def holds_elsewhere(self) -> bool:
        """Whether Reserve or Permit has another process to wait for, as things stand."""
        return False

    def basis_generation(self, nodes: Snapshot) -> Hashable | None:
        """A value that is equal as long as `basis` says the same of every pod; None where that is unknown.

        It is looked at in every cycle, and `basis` only where it changed.
        """
        del nodes
        return None

    def basis(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """What answers for pods of this signature hang on besides each node's own row.

        While it is equal, answers are used again, and only rows that changed are asked about. None where
        that cannot be said: then all nodes are asked about for every pod.
        """
        del state, pod, nodes
        return None if self.depends is Depends.CLUSTER else ()


class PreEnqueuePlugin(Plugin):
    """Keeps pods out of the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> MaybeAwaitable[Status]:
        """Whether the pod may be queued for scheduling; must be cheap.

        Only a plugin in another process may give an awaitable: the pod waits in the pool meanwhile.
        """


class QueueSortPlugin(Plugin):
    """Orders the active queue."""

    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Whether `a` goes before `b`."""

    def sort_key(self, info: QueuedPodInfo) -> Any:
        """The same order as a value that compares without calling back; override it where there is one."""
        return _by_less(self)(replace(info))  # a copy: the queue's record changes while the key stands


class KeyedQueueSortPlugin(QueueSortPlugin):
    """Orders the active queue by keys that another process gives to pods."""

    @abstractmethod
    def key_of(self, pod: Pod) -> Awaitable[SortKey]:
        """The pod's key; NO_KEY where it can't be had in time.

        From now on the plugin may give the pod another one by itself, until `left`.
        """

    @abstractmethod
    def left(self, uid: str) -> None:
        """The pod of that UID, which was asked about, waits no more."""


def _by_less(plugin: QueueSortPlugin) -> Callable[[QueuedPodInfo], Any]:
    return cmp_to_key(lambda a, b: plugin.less(b, a) - plugin.less(a, b))


class EnqueueExtensions(Plugin):
    """Says which cluster events may make a pod schedulable that this plugin rejected."""

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The events, each with its hint function if it has one.

        In process, what a hint reads of the waiting pod is what its template has (objects/pod_template.py),
        its status but for conditions and nomination, and whether the event is about this pod: it is asked
        once for all pods that are alike in that.
        """


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """A status, and the only nodes worth looking at, if the plugin can tell."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


class PreFilterPlugin(Plugin):
    """Looks at the pod once before nodes are filtered."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[PreFilterResult]:
        """Prepare; SKIP leaves this plugin's filter out of the cycle."""


class PreFilterExtensions(PreFilterPlugin):
    """A pre-filter whose state has to follow pods that are thought added or removed."""

    follows_side_by_side: ClassVar[bool] = False
    """Whether `follow_pods` is there, so that several nodes can be thought about in one state."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, other: PodInfo, node: Snapshot) -> Status:
        """Count `other` in on that node, a table of one row."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, other: PodInfo, node: Snapshot) -> Status:
        """Count `other` out."""

    def follow_pods(
        self, state: CycleState, pod: Pod, others: Sequence[tuple[int, PodInfo]], nodes: Snapshot, sign: int
    ) -> None:
        """Count pods in (sign 1) or out (-1), each on its row of the table.

        Each row is a world of its own: what comes and goes there changes the answer for that row alone. One
        state follows one table, and `filter` is asked about that table.
        """
        raise NotImplementedError


class FilterPlugin(Plugin):
    """Turns down nodes."""

    reasons: ClassVar[tuple[Reason, ...]] = ()
    """What the codes 1, 2, ... mean."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """A code for each node of the table, 0 where it passes.

        Raises: any exception fails the whole cycle with its text.
        """

    def filter_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Callable[[int], int] | None:
        """A function from a row of the whole snapshot to the code that `filter` has there.

        None where there is only the vector form. It is made once for pods of one class and may be called as
        long as `nodes.static_generation` and `nodes.resource_names` stay; it reads columns when it is called.
        It gives `UNASKED` where another process is to be asked first, by `bring_verdicts`.
        """
        del state, pod, nodes
        return None

    def bring_verdicts(self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows) -> Awaitable[None]:
        """Have verdicts on these rows at hand; awaited, they are. Shapes: rows intp (k,).

        Raises: any exception fails the whole cycle with its text.
        """
        raise NotImplementedError

    def filter_status(self, state: CycleState, code: int) -> Status:
        """What a code stands for in this cycle."""
        del state
        reason = self.reasons[code - 1]
        return Status(reason.code, (reason.text,), self.name)


class NominatingMode(Enum):
    """Whether a nomination is to be written or left as it is."""

    NOOP = "noop"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class NominatingInfo:
    """What becomes of the pod's nomination; OVERRIDE with no name takes it back."""

    mode: NominatingMode = NominatingMode.NOOP
    node_name: str = ""


KEEP_NOMINATION = NominatingInfo()
CLEAR_NOMINATION = NominatingInfo(NominatingMode.OVERRIDE, "")


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """A status, and what becomes of the nomination; None leaves it."""

    status: Status
    nominating_info: NominatingInfo | None = None


class PostFilterPlugin(Plugin):
    """Tries to make room once no node fits."""

    @abstractmethod
    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Any) -> MaybeAwaitable[PostFilterResult]:
        """Nominate a node, or say why not; `diagnosis` is a berth.framework.diagnosis.Diagnosis."""


class GroupTrial(Protocol):
    """Placed pods removed on trial and added again, and whether a pod group fits then. Source: KEP-5710."""

    def take_out(self, pod: PodInfo) -> None:
        """Think a placed pod away."""

    def put_back(self, pod: PodInfo) -> None:
        """Think a pod back that was taken out."""

    async def fits(self) -> Status:
        """Success where the group would be scheduled now, else its status."""


class PodGroupPostFilterPlugin(Plugin):
    """Tries to make room for a pod group that was turned down as a whole."""

    @abstractmethod
    def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], trial: GroupTrial
    ) -> Awaitable[Status]:
        """Success where the group may wait for room, or why not; `pods` are those that were tried."""


class PreScorePlugin(Plugin):
    """Looks at the feasible nodes once before they are scored."""

    @abstractmethod
    def pre_score(
        self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask
    ) -> MaybeAwaitable[Status]:
        """Prepare; SKIP leaves this plugin's score out of the cycle. Shapes: feasible bool (n,)."""


class ScorePlugin(Plugin):
    """Ranks nodes."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[Scores]:
        """A raw score for each node of the table, whether feasible or not.

        Raises: any exception fails the whole cycle with its text.
        """

    def score_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Callable[[int], int] | None:
        """A function from a row of the whole snapshot to the raw score that `score` has there.

        None where there is only the vector form. The rules of `FilterPlugin.filter_row` hold.
        """
        del state, pod, nodes
        return None

    def bring_scores(self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows) -> Awaitable[None]:
        """Have raw scores on these rows at hand, as `FilterPlugin.bring_verdicts`."""
        raise NotImplementedError


class NormalizeScorePlugin(ScorePlugin):
    """A score that is mapped to 0 to 100 once it is known for every feasible node."""

    normalizes_by_extremes: ClassVar[bool] = False
    """Whether a final score depends on the raw one, the lowest and the highest raw score, and nothing else.

    Then a node that comes or goes between the two changes no other one's.
    """

    @abstractmethod
    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The final scores. Shapes: scores and result int64 (k,), the feasible nodes in table order."""

    def leaves_scores(self, state: CycleState) -> bool:
        """Whether in this cycle every raw score is the final one, whatever the others are."""
        del state
        return False


class ReservePlugin(Plugin):
    """Holds things outside the node's sums for a pod that is about to be bound."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[Status]:
        """Hold."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[None]:
        """Let go; called for every plugin after a failure, also where `reserve` never ran, maybe twice."""


@dataclass(frozen=True, slots=True)
class PermitResult:
    """A status; WAIT comes with how long to wait at most."""

    status: Status = SUCCESS
    timeout_seconds: float = 0.0


class PermitPlugin(Plugin):
    """Allows, denies or delays the binding."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[PermitResult]:
        """Decide."""


@dataclass(frozen=True, slots=True)
class PreFlightResult:
    """Whether `pre_bind` has work to do (SKIP: none), and whether it may run beside others."""

    status: Status = SUCCESS
    allow_parallel: bool = False


class PreBindPlugin(Plugin):
    """Does what has to be done before the pod may be bound."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
        """Say what `pre_bind` is going to do: light, without any call."""
        del state, pod, node_name
        return PreFlightResult()

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Do it."""


class BindPlugin(Plugin):
    """Binds the pod to the node."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Bind; SKIP passes on to the next."""


class DirectBindPlugin(BindPlugin):
    """Binds every pod without a task of its own, which is how nearly all pods are bound."""

    @abstractmethod
    def begin_bind(
        self, state: CycleState, pod: Pod, node_name: str, done: Callable[[Status], object]
    ) -> None:
        """Begin what `bind` does; `done` is called once with its status, maybe before this returns.

        The status is not SKIP.
        """


class PostBindPlugin(Plugin):
    """Is told of pods that were bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[None]:
        """Take note."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A part of the cluster that a pod group may go to as a whole.

    Shapes: rows intp (k,), row numbers of the snapshot, ascending.
    """

    name: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class PlacementsResult:
    """A status, and the placements to try."""

    status: Status = SUCCESS
    placements: Sequence[Placement] = ()


class PlacementGeneratePlugin(Plugin):
    """Says which parts of the cluster a pod group may go to. Source: KEP-5732."""

    @abstractmethod
    def generate_placements(
        self, state: CycleState, group: GroupKey, nodes: Snapshot, parent: Placement
    ) -> MaybeAwaitable[PlacementsResult]:
        """The placements within the parent."""


@dataclass(frozen=True, slots=True)
class ProposedPlacement:
    """A placement in which the group fits, and the node of each pod that would go there."""

    placement: Placement
    assignments: Sequence[tuple[Pod, str]]


class PlacementScorePlugin(Plugin):
    """Ranks placements."""

    @abstractmethod
    def score_placements(
        self, state: CycleState, group: GroupKey, nodes: Snapshot, proposed: Sequence[ProposedPlacement]
    ) -> MaybeAwaitable[Scores]:
        """A score for each placement, from 0 to 100.

        Shapes: result int64 (k,), in the order of the placements. Raises: any exception fails the cycle.
        """
