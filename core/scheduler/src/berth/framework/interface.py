"""The contracts of every extension point.

A plugin is a class with upstream's name that inherits from the class of each point it extends. The order for
one pod: pre_enqueue - less - pre_filter - filter - (post_filter) - pre_score - score - normalize_score -
reserve - permit - pre_bind_pre_flight - pre_bind - bind - post_bind.

What holds at every point:

- All methods are called from one event loop. Scheduling cycles run one after the other, binding cycles
  (permit's wait to post_bind) beside them.
- Filter and score answer for all nodes of a table at once. A method of an in-tree plugin returns its answer;
  a sidecar may return an awaitable of it.
- What a plugin needs later in the cycle it keeps in `state`, not in itself: the state ends with the attempt.
- Pods, nodes and tables are shared and must not be changed.
- A rejection is a Status. An exception is an error of the plugin: the attempt fails with its text and the pod
  is retried with backoff.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go (Kubernetes v1.36).
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import cached_property, cmp_to_key
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.queueing.queued_pod import QueuedPodInfo, SortKey
from berth.framework.status import SUCCESS, Code, Status
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import Features
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.pod_group_states import AnyKey
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

ReasonCodes = NDArray[np.unsignedinteger[Any]]
"""Shape (n,): 0 where the node passes, else a code that the plugin's `filter_status` explains."""

Scores = NDArray[np.int64]
"""Shape (n,): any int64 before normalisation, 0 to 100 after it."""

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]


class Reason(NamedTuple):
    """A reason to reject a node: upstream's text, and the code that says whether preemption could help."""

    text: str
    code: Code = Code.UNSCHEDULABLE


class Depends(Enum):
    """What a plugin's raw answer for a node depends on, besides the pod.

    OBJECT: the Node object only, not the pods on it. NODE: that node's own row, pods included. CLUSTER: also
    other nodes' pods, or other objects.
    """

    OBJECT = "object"
    NODE = "node"
    CLUSTER = "cluster"


A = TypeVar("A")


class RowForm(NamedTuple, Generic[A]):
    """A plugin's answers for rows of the whole snapshot, without a table of these rows.

    They equal those of the vector form, to the bit. None: the rows are made a table of their own.
    """

    one: Callable[[int], int] | None = None
    """Of one row."""
    some: Callable[[Rows], A] | None = None
    """Of k rows. Shapes: rows intp (k,); result (k,)."""


NO_ROW_FORM: RowForm[Any] = RowForm()


class VersionedKey:
    """A cache key that is not asked for again as long as `version` gives the same for the table."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("at", "value", "version")

    def __init__(self, value: Hashable, version: Callable[[Snapshot], Hashable], nodes: Snapshot) -> None:
        self.value = value
        self.version = version
        self.at = version(nodes)

    def __eq__(self, other: object) -> bool:
        """Whether the value is the same, whatever the version."""
        return self.value == (other.value if isinstance(other, VersionedKey) else other)


CacheKey: TypeAlias = Hashable | VersionedKey


class Plugin(ABC):  # noqa: B024 - the points below are what is abstract
    """A plugin that a profile can name. One instance serves one profile."""

    in_process: ClassVar[bool] = True
    """Whether the plugin runs in this process; answers of any other are checked against the contract."""

    depends: ClassVar[Depends] = Depends.CLUSTER
    """Unless CLUSTER, results of `pre_filter` and `pre_score`, and what they write to the state, may depend
    only on the pod; they are shared between equal pods and must not be changed afterwards."""

    concerns: Features | None = None
    """Of a pod that has none of these features the plugin is not asked while nodes are looked at: it would
    answer SKIP in `pre_filter` and `pre_score`, write nothing, score each node 0, and sign all such pods the
    same. None: it is asked about every pod."""

    @cached_property
    def name(self) -> str:
        """The plugin's name in KubeSchedulerConfiguration."""
        return type(self).__name__

    def sign_pod(self, pod: Pod) -> Hashable | None:
        """Everything that this plugin's verdicts and scores read of the pod; None if that is unknown.

        Pods of one profile with equal signatures from every plugin share answers. The signature may read the
        pod only; all other inputs belong to `cache_key`. One None disables sharing for the pod.
        """
        del pod
        return None

    def reserves_remotely(self) -> bool:
        """Whether `reserve` or `permit` would wait for another process now."""
        return False

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> CacheKey | None:
        """Cache key for every input outside the pod's signature and the node's own row.

        While it stays equal, earlier answers are reused and only changed rows are evaluated. None disables
        reuse: all nodes are evaluated for every pod. Called in every cycle, so it must be cheap, or be a
        `VersionedKey`.
        """
        del state, pod, nodes
        return None if self.depends is Depends.CLUSTER else ()


class PreEnqueuePlugin(Plugin):
    """Gates pods before activeQ."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> MaybeAwaitable[Status]:
        """Return SUCCESS to admit the pod to activeQ; any other status keeps it gated.

        Called when the pod is queued and again after events that the plugin registered, so it must be cheap
        and repeatable. Only a sidecar may return an awaitable: the pod stays among the
        unschedulable pods until it is answered.
        """


class QueueSortPlugin(Plugin):
    """Orders activeQ. All profiles of a process must use the same plugin with the same arguments."""

    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Whether `a` is scheduled before `b`: a strict weak order that does not change while both wait."""

    def sort_key(self, info: QueuedPodInfo) -> Any:
        """A key that sorts as `less` does. Override it where a plain value (a tuple) exists."""
        return _by_less(self)(replace(info))  # a copy: the queue's record changes while the key stands


class KeyedQueueSortPlugin(QueueSortPlugin):
    """Orders activeQ by keys that another process assigns to pods."""

    @abstractmethod
    def key_of(self, pod: Pod) -> Awaitable[SortKey]:
        """The pod's key; NO_KEY if it is not available in time.

        From this call until `left`, the plugin may replace the key at any time.
        """

    @abstractmethod
    def left(self, uid: str) -> None:
        """The pod of that UID left the queue. Called for each pod that `key_of` was called with."""


def _by_less(plugin: QueueSortPlugin) -> Callable[[QueuedPodInfo], Any]:
    return cmp_to_key(lambda a, b: plugin.less(b, a) - plugin.less(a, b))


class EnqueueExtensions(Plugin):
    """Declares which cluster events may make pods schedulable that this plugin rejected."""

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The events, each with an optional hint function. Called once, when the profile is built.

        A hint is called once for all waiting pods that are alike, so in process it may read only: the pod's
        template (objects/pods/pod_template.py), its status except conditions and nomination, and whether the
        event is about the pod itself. A hint that raises counts as Queue.
        """


class PreFilterResult(msgspec.Struct, frozen=True):
    """A status and, if the plugin can narrow them down, the names of the only candidate nodes."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


class PreFilterPlugin(Plugin):
    """Prepares the filter of one cycle."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[PreFilterResult]:
        """Compute what `filter` needs and write it to `state`. Called once a cycle, before any filter.

        SUCCESS goes on; SKIP leaves this plugin's filter and extensions out of the cycle; UNSCHEDULABLE and
        UNSCHEDULABLE_AND_UNRESOLVABLE reject the pod on all nodes. Node names of several plugins intersect.
        """


class PreFilterExtensions(PreFilterPlugin):
    """A pre-filter whose state follows simulated additions and removals of pods (preemption, nominations)."""

    follows_side_by_side: ClassVar[bool] = False
    """Whether `follow_pods` is implemented, so that one state can simulate several nodes."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, other: PodInfo, node: Snapshot) -> Status:
        """Update `state` as if `other` ran on `node` (a table of one row). Undone by `remove_pod`."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, other: PodInfo, node: Snapshot) -> Status:
        """Update `state` as if `other` did not run on `node`. Undone by `add_pod`."""

    def follow_pods(
        self, state: CycleState, pod: Pod, others: Sequence[tuple[int, PodInfo]], nodes: Snapshot, sign: int
    ) -> None:
        """Update `state` as if each pod had come to (sign 1) or left (-1) the row it is paired with.

        Rows are simulated independently: a change on one row must not affect the answer for any other. One
        state belongs to one table, and `filter` is called with that table.
        """
        raise NotImplementedError


class FilterPlugin(Plugin):
    """Rejects nodes."""

    reasons: ClassVar[tuple[Reason, ...]] = ()
    """Meaning of the codes 1, 2, ... in this order."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """Return a code for each node of the table, 0 where the node passes.

        May be called several times a cycle with different tables (rows that changed, nominated pods,
        preemption), so it must not have side effects. When several plugins reject a node, the first in
        profile order owns it. Raises: any exception fails the cycle with its text.
        """

    def filter_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[ReasonCodes]:
        """Return functions from rows of the whole snapshot to the codes that `filter` would return there.

        Called once for pods of one class; the functions may be called until `nodes.static_generation` or
        `nodes.resource_names` changes, and read the columns when they are called.
        """
        del state, pod, nodes
        return NO_ROW_FORM

    def room(self, state: CycleState, pod: Pod, nodes: Snapshot, most: int) -> Ints | int | None:
        """How many pods of this class fit beside each other on each node that passes, `most` if more do.

        None where other nodes' pods count, or where only trying one after the other tells. By it groups of
        equal pods are counted in all placements at once.

        Shapes: result int64 (n,), or one number for all nodes; without meaning where `filter` rejects.
        """
        del state, pod, nodes
        return most if self.depends is Depends.OBJECT else None

    def filter_status(self, state: CycleState, code: int) -> Status:
        """The status that a code of this cycle stands for."""
        del state
        reason = self.reasons[code - 1]
        return Status(reason.code, (reason.text,), self.name)


class NominatingMode(Enum):
    """Whether a nomination is written or left unchanged."""

    NOOP = "noop"
    OVERRIDE = "override"


class NominatingInfo(msgspec.Struct, frozen=True):
    """The change of the pod's nomination; OVERRIDE with an empty name clears it."""

    mode: NominatingMode = NominatingMode.NOOP
    node_name: str = ""


KEEP_NOMINATION = NominatingInfo()
CLEAR_NOMINATION = NominatingInfo(NominatingMode.OVERRIDE, "")


class PostFilterResult(msgspec.Struct, frozen=True):
    """A status, and the change of the nomination; None leaves it unchanged."""

    status: Status
    nominating_info: NominatingInfo | None = None


class PostFilterPlugin(Plugin):
    """Tries to make a pod schedulable after no node passed the filters."""

    @abstractmethod
    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Any) -> MaybeAwaitable[PostFilterResult]:
        """Return SUCCESS with a nomination, or a rejection that says why not.

        Plugins are called in profile order until one returns SUCCESS or an error. The pod is never bound in
        this cycle; it is retried once events make room. `diagnosis` is a
        berth.framework.attempts.diagnosis.Diagnosis: the status of each rejected node.
        """


class GroupReleasePlugin(Plugin):
    """Frees what keeps a pod of a group from other nodes and no other pod uses.

    Asked for the pods that fit nowhere of a group that was turned down, where PostFilter is no part of an
    attempt at a pod of a group: from Kubernetes v1.37 on (kubernetes/kubernetes#140412).
    """

    @abstractmethod
    async def release(self, state: CycleState, pod: Pod, diagnosis: Any) -> str:
        """What was freed, in words for the group's condition; "" where nothing was.

        `state` and `diagnosis` are those of the attempt at the pod. Raises: what any exception says
        joins the group's condition, and the group makes room as if nothing could be freed.
        """


class ProposalExtensions(PreFilterPlugin):
    """A pre-filter whose state follows what pods keep from others after they are gone, such as claims.

    Asked about evictions that a plugin proposes, which it may carry out because it knows that others let go
    of what the pods held. kube-scheduler's own preemption leaves claims as they are.
    """

    @abstractmethod
    def follow_release(self, state: CycleState, pod: Pod, gone: Sequence[Pod]) -> None:
        """Update `state`, a simulated one, as if these pods and what is kept for them alone were gone."""


class GroupTrial(Protocol):
    """Simulated eviction and restoration of placed pods for a pod group. Source: KEP-5710."""

    def take_out(self, pod: PodInfo) -> None:
        """Simulate the eviction of a placed pod."""

    def put_back(self, pod: PodInfo) -> None:
        """Restore a pod that was taken out."""

    async def fits(self) -> Status:
        """SUCCESS if the group would be scheduled in the simulated cluster, else its rejection."""

    async def still_fits(self) -> bool:
        """Whether the group, which fitted when `fits` was called last, fits after what was put back since.

        Where the release has it so, each pod has to fit on the node that it found then.
        """

    @property
    def found(self) -> Mapping[str, str]:
        """The nodes that pods found when `fits` was called last, by the pods' UIDs."""


class PodGroupPostFilterResult(msgspec.Struct, frozen=True):
    """A status, and the nodes that pods of the group are nominated to, by UID; others keep what they have."""

    status: Status
    nominations: Mapping[str, NominatingInfo] = msgspec.field(default_factory=dict)


class PodGroupPostFilterPlugin(Plugin):
    """Tries to make a pod group schedulable that was rejected as a whole."""

    @abstractmethod
    def pod_group_post_filter(
        self, state: CycleState, group: AnyGroup, pods: Sequence[Pod], trial: GroupTrial
    ) -> Awaitable[PodGroupPostFilterResult]:
        """Return SUCCESS if victims were chosen and the group may wait for their room, else why not.

        `state` is that of the attempt at the group, with the record of its first pod, and the Diagnosis of
        the first pod that found no node, if there is one; `pods` are the members
        that the group cycle tried. The trial is undone by the caller. UNSCHEDULABLE: the next plugin is
        asked; any other status ends the phase.
        """


class PreScorePlugin(Plugin):
    """Prepares the scores of one cycle."""

    @abstractmethod
    def pre_score(
        self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask
    ) -> MaybeAwaitable[Status]:
        """Compute what `score` needs and write it to `state`. Called once a cycle, before any score.

        SKIP leaves this plugin's score out of the cycle; any other status but SUCCESS fails the cycle.
        Shapes: feasible bool (n,).
        """


class ScorePlugin(Plugin):
    """Ranks nodes."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[Scores]:
        """Return a raw score for each node of the table, feasible or not; more is better.

        Without `normalize_score` each must be from 0 to 100. Must not have side effects.
        Raises: any exception fails the cycle with its text.
        """

    def score_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[Scores]:
        """Return functions from rows of the whole snapshot to the raw scores that `score` would give.

        The rules of `FilterPlugin.filter_by_row` apply.
        """
        del state, pod, nodes
        return NO_ROW_FORM


class NormalizedBy(Enum):
    """The raw scores on which a node's final score depends, besides its own."""

    NOTHING = "nothing"
    EXTREMES = "extremes"
    """The lowest and the highest raw score of the feasible nodes."""
    ALL = "all"
    """The raw scores of all feasible nodes."""


class NormalizeScorePlugin(ScorePlugin):
    """Scores that are mapped to 0 to 100 once all feasible nodes have one."""

    def normalized_by(self, state: CycleState) -> NormalizedBy:
        """Which raw scores, besides a node's own, its final score of this cycle depends on.

        A final score is reused while these raw scores are unchanged: NOTHING, if `normalize_score` maps each
        score by itself; EXTREMES, if it uses only the lowest and the highest; ALL otherwise.
        """
        del state
        return NormalizedBy.ALL

    @abstractmethod
    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """Return the final scores, each from 0 to 100; anything else fails the cycle.

        Shapes: scores and result int64 (k,), the feasible nodes in table order.
        """


class ReservePlugin(Plugin):
    """Accounts for resources that the node's own sums do not cover, before a pod is bound."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[Status]:
        """Reserve the pod's share on the node. Called once an attempt, after the pod was assumed there.

        Plugins are called in profile order; the first status but SUCCESS ends the attempt. On this and any
        later failure `unreserve` of all Reserve plugins is called, in reverse order.
        """

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[None]:
        """Release what `reserve` took. It cannot fail.

        Must be idempotent: it is also called if `reserve` was not, or returned a rejection.
        """


class PermitResult(msgspec.Struct, frozen=True):
    """A status; WAIT comes with the longest time to wait, in seconds."""

    status: Status = SUCCESS
    timeout_seconds: float = 0.0


class PermitPlugin(Plugin):
    """Approves, rejects or delays the binding."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[PermitResult]:
        """Return SUCCESS, a rejection, or WAIT: the binding cycle then waits for approval up to the timeout.

        A waiting pod is approved or rejected through `Handle.waiting_pods`. A rejection or a timeout ends the
        attempt and `unreserve` is called.
        """


class PreFlightResult(msgspec.Struct, frozen=True):
    """Whether `pre_bind` has work to do (SKIP: none), and whether it may run in parallel with others."""

    status: Status = SUCCESS
    allow_parallel: bool = False


class PreBindPlugin(Plugin):
    """Performs work that must be complete before the pod is bound, such as provisioning volumes."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
        """Announce the work of `pre_bind`. Must be cheap and call nothing; SKIP leaves `pre_bind` out."""
        del state, pod, node_name
        return PreFlightResult()

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Perform the work; may take long. Any status but SUCCESS ends the attempt: `unreserve` is called."""


class BindPlugin(Plugin):
    """Binds the pod to the node."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Bind the pod. SKIP passes it to the next Bind plugin; any other status is the outcome."""


class DirectBindPlugin(BindPlugin):
    """A bind plugin that needs no task for each pod."""

    @abstractmethod
    def begin_bind(
        self, state: CycleState, pod: Pod, node_name: str, done: Callable[[Status], object]
    ) -> None:
        """Start the binding. `done` is called exactly once with its status, possibly before this returns.

        The status is never SKIP.
        """


class PostBindPlugin(Plugin):
    """Is notified of pods that were bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[None]:
        """The pod was bound. Nothing depends on the answer; an exception is recorded with the attempt."""

    def wants_post_bind(self, state: CycleState) -> bool:
        """Whether there is anything to notify the plugin of in this attempt; False spares a task."""
        del state
        return True


class Placement(msgspec.Struct, frozen=True):
    """A set of nodes on which a pod group may be scheduled as a whole.

    Shapes: rows intp (k,), row numbers of the snapshot, ascending.
    """

    name: str
    rows: Rows


class PlacementsResult(msgspec.Struct, frozen=True):
    """A status, and the placements to try."""

    status: Status = SUCCESS
    placements: Sequence[Placement] = ()


class PlacementGeneratePlugin(Plugin):
    """Proposes placements for pod groups. Source: KEP-5732."""

    @abstractmethod
    def generate_placements(
        self, state: CycleState, group: AnyKey, nodes: Snapshot, parent: Placement
    ) -> MaybeAwaitable[PlacementsResult]:
        """Return the placements within the parent, in the order in which they are tried."""


class PlacementProgress(NamedTuple):
    """How far the attempt at a group has come: its pods that are still to be tried, and those with a node."""

    remaining: int
    scheduled: int


class PlacementFeasiblePlugin(Plugin):
    """Says whether a group may go with the pods that have a node. Source: KEP-4671."""

    @abstractmethod
    def placement_feasible(
        self, state: CycleState, group: AnyKey, progress: PlacementProgress
    ) -> MaybeAwaitable[Status]:
        """Return SUCCESS where the group may go as it stands; its other pods are tried all the same.

        UNSCHEDULABLE: it may not, however many of the remaining pods find a node; the attempt ends. WAIT: it
        may not yet. Called before the first pod of the group is tried, and after each of them; `state` is
        that of the attempt at the group.
        """

    def judges_groups(self) -> bool:
        """Whether it is asked at present: a sidecar is where it announced the call."""
        return True


class ProposedPlacement(msgspec.Struct, frozen=True):
    """A placement in which the group fits, and the node of each member in it."""

    placement: Placement
    assignments: Sequence[tuple[Pod, str]]


class PlacementScorePlugin(Plugin):
    """Ranks placements."""

    reads_nodes: ClassVar[bool] = True
    """Whether scores depend on which nodes of a placement pods go to. Where they depend only on the pods and
    the placement, assignments may leave the nodes' names empty."""

    @abstractmethod
    def score_placements(
        self, state: CycleState, group: AnyKey, nodes: Snapshot, proposed: Sequence[ProposedPlacement]
    ) -> MaybeAwaitable[Scores]:
        """Return a score from 0 to 100 for each placement; the highest total is taken.

        Shapes: result int64 (k,), in the order of the placements. Raises: any exception fails the cycle.
        """
