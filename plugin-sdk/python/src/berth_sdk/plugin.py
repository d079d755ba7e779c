"""The class that authors fill in; whatever a subclass defines becomes a capability of the plugin."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth_sdk.clock import Clock
from berth_sdk.errors import ArgumentError
from berth_sdk.metrics import Metric
from berth_sdk.nodes import Nodes
from berth_sdk.objects import Node, Pod
from berth_sdk.outcomes import (
    Action,
    Answer,
    ClusterEvent,
    Codes,
    CycleOutcome,
    GroupPreemption,
    MetadataPatch,
    Nomination,
    Normalization,
    PlacementProgress,
    Placements,
    PodGroup,
    PodKey,
    Points,
    ProposedPlacement,
    Reason,
    Scores,
    SortKey,
    Verdicts,
    Wait,
)
from berth_sdk.requeue import Requeue
from berth_sdk.state import ObjectKey, PlacedPod

Result = TypeVar("Result")
Maybe: TypeAlias = Result | Awaitable[Result]


@dataclass(frozen=True, slots=True)
class Call:
    """The call being answered."""

    profile: str
    key: PodKey
    shadow: bool = False
    """The plugin runs in the profile's shadow: its answer is compared and changes nothing."""


answering: ContextVar[Call] = ContextVar("berth_call")


def current_call() -> Call:
    """Return the call being answered: its profile, and the pod's attempt.

    Raises: LookupError: no call is being answered.
    """
    return answering.get()


@dataclass(frozen=True, slots=True)
class EventInterest:
    """Cluster events that may let a pod fit which this plugin rejected; all given conditions must hold."""

    resource: str
    actions: tuple[Action, ...]
    changed_fields: tuple[str, ...] = ()
    label_selector: str | None = None
    pod_resources: tuple[str, ...] = ()
    same_namespace: bool = False
    """The object has to be in the waiting pod's namespace."""
    equal_labels: tuple[str, ...] = ()
    """Labels that object and waiting pod have to carry with equal values."""
    pod_label_names_object: str | None = None
    """A label of the waiting pod whose value has to be the object's name."""
    ask_hint: bool | None = None
    """Whether `queueing_hint` is asked about such an event; None: if the plugin has one."""


@dataclass(frozen=True, slots=True)
class WatchedResource:
    """A kind of object beside nodes and pods to be mirrored, as `nodes.objects`."""

    group: str
    version: str
    resource: str
    label_selector: str | None = None

    @property
    def events(self) -> str:
        """What the kind is called in EventInterest."""
        return ".".join(part for part in (self.resource, self.version, self.group) if part)


class Plugin:
    """A scheduler plugin.

    Override what you need; functions may be `async` except per-node forms and state hooks. One call is
    answered at a time unless a function awaits, so plain attributes need no locks.
    """

    name: str
    """A DNS label: what profiles call the plugin."""
    version: str = "0.0.0"
    reasons: tuple[Reason, ...] = ()
    """The reasons that `filter_nodes` numbers from 1."""
    normalization: Normalization = Normalization.NONE
    events: tuple[EventInterest, ...] = ()
    pod_fields: tuple[str, ...] | None = None
    """JSON pointers of all pod fields the verdicts depend on; None: any."""
    pod_resources: tuple[str, ...] = ()
    """Mirror only the pods that request one of these; empty: all."""
    wants_pods: bool = True
    """Mirror the pods on nodes; a `node_local` plugin without them is not asked again for a placed pod."""
    pods_without_status: bool = False
    """A mirrored pod's status may be an old one: pods that changed in nothing else are not brought again."""
    wants_nominations: bool = False
    watches: tuple[WatchedResource, ...] = ()
    node_local: bool = False
    """A node's verdict and score depend on the pod, the node and the mirrored pods there, on no others."""
    score_needs_feasible: bool = False
    uses_clock: bool = False
    """The time is read from `clock`, and timers are set by it, and by nothing else: a simulation sets it."""
    arguments: type[Any] | None = None
    """A dataclass: what a profile may say, with defaults; see `arguments_for`."""
    arguments_schema: dict[str, Any] | None = None
    """The JSON Schema of arguments that `configure` reads by itself."""
    wanted_deadline_seconds: float | None = None
    wanted_deadlines_seconds: Mapping[str, float] = MappingProxyType({})
    """The time wanted at single points, by method: `{"pre_bind": 5.0}`."""

    @property
    def requeue(self) -> Requeue:
        """Tell the scheduler that state outside the cluster changed."""
        return self.__dict__.setdefault("_requeue", Requeue())  # type: ignore[no-any-return]

    @cached_property
    def clock(self) -> Clock:
        """Read the time and set timers, as `uses_clock` announces."""
        return Clock()

    def arguments_for(self, profile: str) -> Any:
        """Return a profile's arguments as the class `arguments`; the defaults, if it was not configured."""
        known = self._arguments_by_profile.get(profile)
        if known is None and self.arguments is not None:
            known = self.arguments()
        return known

    def arguments_of(self, pod: Pod) -> Any:
        """Return the arguments of the pod's profile."""
        return self.arguments_for(pod.spec.scheduler_name or "default-scheduler")

    @property
    def _arguments_by_profile(self) -> dict[str, Any]:
        return self.__dict__.setdefault("_arguments", {})  # type: ignore[no-any-return]

    def configure(self, arguments: Any, profile: str) -> None:
        """Take over a profile's arguments; raise ArgumentError with everything that is wrong.

        They are what the profile says, as JSON has it; or of the class `arguments`, and right as far as that
        can say.
        """
        if arguments and self.arguments is None:
            raise ArgumentError(*(f"{key}: unknown argument of profile {profile}" for key in arguments))

    def in_shadow(self, profile: str) -> bool:
        """Return whether the plugin is shown that profile's attempts and has no say in them.

        There it must not act on the cluster by itself. `configure`, which is called again when this turns,
        may ask.
        """
        return profile in self._shadows

    @property
    def _shadows(self) -> set[str]:
        return self.__dict__.setdefault("_in_shadow_of", set())  # type: ignore[no-any-return]

    def profile_removed(self, profile: str) -> None:
        """Hear that a profile does not use the plugin any more."""

    def stopped(self) -> Maybe[None]:
        """Hear that the server has stopped: close what you opened."""

    def metrics(self) -> Iterable[Metric]:
        """Return what the plugin counts itself; shown at /metrics, behind what the SDK counts."""
        return ()

    def state(self) -> Mapping[str, Any]:
        """Return how things stand inside, for people; shown at /state as JSON."""
        return {}

    # -- asked about the pod ------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Maybe[Answer]:
        """Answer whether the pod may enter the queue."""

    def pre_filter(self, pod: Pod) -> Maybe[Answer]:
        """Answer for the pod before any node is looked at; SKIP: the plugin has nothing to filter."""

    def post_filter(self, pod: Pod, nodes: Nodes, verdicts: Verdicts) -> Maybe[Nomination | Answer]:
        """Make room somewhere, after no node was left."""
        raise NotImplementedError

    # -- asked about nodes --------------------------------------------------------------------------------

    def filter(self, pod: Pod, node: Node) -> str | Reason | None:
        """Answer None if the node can take the pod, else why not."""
        raise NotImplementedError

    def filter_nodes(self, pod: Pod, nodes: Nodes) -> Maybe[Codes | Verdicts]:
        """Answer for all nodes at once: 0 passes, k is `reasons[k - 1]`; or True where a node passes.

        An `async` form keeps the nodes it was given, whatever comes while it waits; it can't be asked about
        overlays, so that preemption makes no room where it turns a node down.
        Shapes: uint8 or bool (n,). Where `nodes.candidates` is False the answer is ignored.
        """
        raise NotImplementedError

    def score(self, pod: Pod, node: Node) -> int:
        """Say how good the node is for the pod, 0 to 100 unless `normalization` says otherwise."""
        raise NotImplementedError

    def score_nodes(self, pod: Pod, nodes: Nodes) -> Maybe[Points | Scores | None]:
        """Score all nodes at once; None: no opinion on this pod.

        Shapes: integers (n,).
        """
        raise NotImplementedError

    # -- asked after a node was chosen ----------------------------------------------------------------------

    def reserve(self, pod: Pod, node: Node) -> Maybe[MetadataPatch | Answer]:
        """Set aside what the pod will use, under current_call().key; repeating it changes nothing.

        A patch accepts, and is written in pre_bind's place, which is then called after a restart only.
        """

    def unreserve(self, key: PodKey, node_name: str) -> Maybe[None]:
        """Give it back; unknown keys and old attempts are none of your business."""

    def permit(self, pod: Pod, node: Node) -> Maybe[Wait | Answer]:
        """Let the pod go on, stop it, or make it wait."""

    def pre_bind(self, pod: Pod, node: Node) -> Maybe[MetadataPatch | Answer]:
        """Prepare the binding, or have annotations and labels written to the pod."""

    def bind(self, pod: Pod, node: Node, annotations: dict[str, str]) -> Maybe[Answer]:
        """Write the binding, with these annotations, in the scheduler's place.

        SKIP: this pod is not yours.
        """
        raise NotImplementedError

    def post_bind(self, key: PodKey, node_name: str) -> Maybe[None]:
        """Hear that the pod was bound."""

    def cycle_done(self, key: PodKey, outcome: CycleOutcome, node_name: str | None) -> Maybe[None]:
        """Hear what became of an attempt."""

    # -- asked about the queue ------------------------------------------------------------------------------

    def queueing_hint(self, pod: Pod, event: ClusterEvent) -> bool:
        """Answer whether the event may let the pod fit, which this plugin rejected."""
        raise NotImplementedError

    def queueing_hints(self, pods: Sequence[Pod], events: Sequence[ClusterEvent]) -> NDArray[np.bool_]:
        """Answer for all pairs at once.

        Shapes: (events, pods).
        """
        raise NotImplementedError

    def sort_key(self, pod: Pod) -> Maybe[SortKey]:
        """Say where the pod stands in the queue, the lowest key first: at most 8 numbers, compared in order.

        Asked once for each version of the pod; `self.requeue.sort_keys` gives other keys later. Pods of equal
        keys stand by priority and time. A failure is logged, and the pod has the key 0.
        """
        raise NotImplementedError

    def pods_left(self, uids: Sequence[str]) -> None:
        """Hear that these pods, which `sort_key` was asked about, wait no more."""

    def queue_reset(self, profile: str) -> None:
        """Forget the profile's pods that `sort_key` was asked about: all that wait are asked about anew."""

    # -- asked about pod groups -----------------------------------------------------------------------------

    def generate_placements(self, group: PodGroup, pod: Pod, nodes: Nodes) -> Maybe[Placements | Answer]:
        """Say which sets of nodes the group may go to as a whole; `pod` is the first of its pods.

        SKIP: no opinion. A text, `Reason` or `Status`: the group can go nowhere. Where `nodes.candidates` is
        False a set has no node.
        """
        raise NotImplementedError

    def score_placements(
        self, group: PodGroup, pod: Pod, nodes: Nodes, proposed: Sequence[ProposedPlacement]
    ) -> Maybe[Points | Scores | None]:
        """Score the placements in which the group fits, each by itself; None: no opinion.

        Shapes: integers (len(proposed),).
        """
        raise NotImplementedError

    def placement_feasible(self, group: PodGroup, pod: Pod, progress: PlacementProgress) -> Maybe[Answer]:
        """Answer None if the group may go as it stands; its other pods are tried all the same.

        A text or `Reason`: it may not, however many of the remaining pods find a node. A `Status` with
        `Code.WAIT`: not yet. The answer counts for the attempt, wherever the pods go.
        """

    def pod_group_post_filter(
        self, group: PodGroup, pod: Pod, nodes: Nodes, verdicts: Verdicts
    ) -> Maybe[Sequence[GroupPreemption] | Answer]:
        """Propose evictions for a group that fits nowhere, the one that you like best first, at most 16.

        `pod` is the first of its pods, `verdicts` those on the first of them that found no node.

        The scheduler tries the group without the victims and has the first carried out by which it fits. An
        empty list: room is on its way. A text, `Reason` or `Status`: there is nothing to be done.
        """
        raise NotImplementedError

    # -- notified of the cluster: keep your own columns with these -------------------------------------------

    def state_reset(self, *, epoch_changed: bool) -> None:
        """Forget all nodes, pods and watched objects; the present ones follow.

        A changed epoch means another run of the scheduler: its attempts are void, and so is what you hold.
        """

    def state_settled(self) -> None:
        """Hear that a full transfer is complete."""

    def node_upserted(self, index: int, node: Node) -> None:
        """Take over a new node at index n, or a changed one at its index."""

    def node_removed(self, index: int, last: int) -> None:
        """Drop the node at `index`; the node at `last` moves there (both may be the same)."""

    def pod_upserted(self, placed: PlacedPod) -> None:
        """Take over a pod that counts on a node, or a change of it."""

    def pod_removed(self, placed: PlacedPod) -> None:
        """Drop a pod that no longer counts."""

    def object_upserted(self, key: ObjectKey, source: bytes) -> None:
        """Take over an object of one of `watches`, as JSON, or a change of it."""

    def object_removed(self, key: ObjectKey) -> None:
        """Drop one."""


def put_in_shadow(plugin: Plugin, profile: str, *, on: bool) -> None:
    """Let `in_shadow` say so of that profile from now on."""
    shadows = plugin._shadows  # noqa: SLF001 - the SDK's side of the class above
    (shadows.add if on else shadows.discard)(profile)


def keep_arguments(plugin: Plugin, profile: str, settings: Any) -> None:
    """Let `arguments_for` say so of that profile from now on; None: the defaults."""
    kept = plugin._arguments_by_profile  # noqa: SLF001 - the SDK's side of the class above
    if settings is None:
        kept.pop(profile, None)
    else:
        kept[profile] = settings


def overrides(plugin: Plugin, *methods: str) -> bool:
    """Return whether the author defined one of these methods."""
    kind: Any = type(plugin)
    return _defines(kind, methods)


@cache
def _defines(kind: Any, methods: tuple[str, ...]) -> bool:
    return any(getattr(kind, each) is not getattr(Plugin, each) for each in methods)


def awaits(plugin: Plugin, *methods: str) -> bool:
    """Return whether one of these methods is `async`."""
    return any(inspect.iscoroutinefunction(getattr(type(plugin), each)) for each in methods)


def plugin(name: str, *, version: str = "0.0.0", **functions: Callable[..., Any]) -> Plugin:
    """Return a plugin made of plain functions, named like Plugin's methods: `plugin("x", filter=f)`.

    Raises: TypeError: there is no such method.
    """
    unknown = [
        each for each in functions if not callable(getattr(Plugin, each, None)) or each.startswith("_")
    ]
    if unknown:
        raise TypeError(f"not an extension point: {', '.join(unknown)}")
    members = {each: staticmethod(function) for each, function in functions.items()}
    kind = type(name, (Plugin,), {"name": name, "version": version, **members})
    made: Plugin = kind()
    return made
