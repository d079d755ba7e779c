"""The outcome of a simulation, as plain values that JSON can hold."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from berth.objects.pods.node_pods import belongs_to_node
from berth.objects.pods.pod import Pod
from berth.simulation.plugins.plugin_calls import PluginUse
from berth.simulation.queue_shares.samples import QueueSample, QueueSummary, summarized
from berth.snapshot.snapshot import Snapshot

API_VERSION: Final = "simulation.berth.dev/v1alpha1"
PERCENTILES: Final = (50, 90, 99)
WITHOUT: Final = "without --what-if"
"""The name of what a simulation comes to without its changes."""

USUAL: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""Resources that every cluster has."""

GATED: Final = "SchedulingGated"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "SchedulerError"
NO_PROFILE: Final = "NoProfile"
WAITING: Final = "Waiting"


class SimulatedPlacement(msgspec.Struct, rename="camel", frozen=True, gc=False, order=True):
    """A pod that got a node. Units: virtual seconds."""

    pod: str
    node: str
    profile: str
    at_seconds: float
    wait_seconds: float
    attempts: int
    number: int
    """Which one in the order of bindings it was."""


class PendingPod(msgspec.Struct, rename="camel", frozen=True, gc=False, order=True):
    """A pod that has no node at the end, and why; the message is kube-scheduler's."""

    pod: str
    profile: str
    reason: str
    message: str
    attempts: int
    no_verdict: str = ""
    """The plugin that has it wait, where it may let the pod go on by itself: the end cut that off."""


class SimulatedPreemption(msgspec.Struct, rename="camel", frozen=True, gc=False, order=True):
    """A pod that was preempted, and its preemptor. Units: virtual seconds."""

    pod: str
    node: str
    by: str
    at_seconds: float


class ResourceUtilization(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """The allocatable and the requested amount of a resource; cpu in thousandths."""

    allocatable: int
    requested: int
    percent: float


class Waits(msgspec.Struct, rename="camel", frozen=True):
    """How long pods waited for their node. Units: virtual seconds."""

    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


class SimulationSummary(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The summary of a simulation, for comparisons."""

    name: str
    seed: int
    placed: int
    pending: int
    preempted: int
    nodes_in_use: int = 0
    """Nodes with a pod that is neither a DaemonSet's nor static."""
    utilization: dict[str, ResourceUtilization]
    fragmentation: dict[str, float]
    waits: Waits
    seconds: float
    plugins: list[PluginUse] = []
    """The sidecars and extenders."""
    queues: dict[str, QueueSummary] = {}
    """What each queue had, used and waited for, where that was asked for."""


class SimulationOutcome(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Everything that came of one simulation."""

    api_version: str = API_VERSION
    kind: str = "Simulation"
    release: str = ""
    """Of Kubernetes, whose kube-scheduler is followed."""
    seed: int
    seconds: float
    """How much virtual time passed."""
    nodes: int
    pods: int
    """Those that were to be scheduled."""
    placements: list[SimulatedPlacement]
    pending: list[PendingPod]
    preemptions: list[SimulatedPreemption]
    utilization: dict[str, ResourceUtilization]
    fragmentation: dict[str, float]
    """The percentage of what is free that no pod could use, by resource."""
    waits: Waits
    nodes_in_use: list[str]
    """Nodes with a pod at the end that is neither a DaemonSet's nor static."""
    left_out: dict[str, int] = {}
    """Objects of the input that no decision reads and no plugin was shown, by kind."""
    plugins: list[PluginUse] = []
    """The sidecars and extenders."""
    queues: list[QueueSample] = []
    """What each queue has, so often as was asked for, in the order of time."""

    evicted: list[str] = []
    """Pods that `--what-if` took from their nodes at the beginning."""
    drain: dict[str, list[str]] = {}
    """What `kubectl drain` says of pods on nodes that a change drains at the beginning, by its messages."""
    before: SimulationSummary | None = None
    """The same without `--what-if`, where it was given."""

    @property
    def placed_on(self) -> dict[str, str]:
        """The node of each pod that got one."""
        return {each.pod: each.node for each in self.placements}


def summed_up(name: str, outcome: SimulationOutcome) -> SimulationSummary:
    """The summary of an outcome."""
    return SimulationSummary(
        name=name,
        seed=outcome.seed,
        placed=len(outcome.placements),
        pending=len(outcome.pending),
        preempted=len(outcome.preemptions),
        nodes_in_use=len(outcome.nodes_in_use),
        utilization=outcome.utilization,
        fragmentation=outcome.fragmentation,
        waits=outcome.waits,
        seconds=outcome.seconds,
        plugins=outcome.plugins,
        queues=summarized(outcome.queues),
    )


def without_profile(pod: Pod, profiles: Iterable[str]) -> PendingPod:
    """The text for a pod that belongs to none of these profiles; None for any other."""
    profile = pod.spec.scheduler_name
    message = f"no profile of that name; there are {', '.join(sorted(profiles))}"
    return PendingPod(pod.key, profile, NO_PROFILE, message, 0)


def in_use(nodes: Snapshot) -> list[str]:
    """The nodes in use: those with a pod other than DaemonSet and static pods."""
    each = zip(nodes.names, nodes.pods, strict=True)
    return sorted(name for name, pods in each if not all(belongs_to_node(i.pod) for i in pods.values()))


def utilization(nodes: Snapshot, extended: Iterable[str]) -> dict[str, ResourceUtilization]:
    """The utilization of each resource that nodes offer; `extended` are the extended resources.

    A cordoned node counts neither with its allocatable nor with its pods' requests.
    """
    found: dict[str, ResourceUtilization] = {}
    counted = ~nodes.unschedulable
    for name in ("cpu", "memory", "ephemeral-storage", *sorted(extended)):
        offered = nodes.offered(name)
        allocatable = 0 if offered is None else sum(offered[counted].tolist())
        if allocatable:
            requested = sum(nodes.held(name)[counted].tolist())
            found[name] = ResourceUtilization(allocatable, requested, round(100 * requested / allocatable, 3))
    return found


def waits_of(seconds: Sequence[float]) -> Waits:
    """The percentiles of these waits."""
    if not seconds:
        return Waits()
    values = np.percentile(np.array(seconds), [*PERCENTILES, 100], method="higher")
    return Waits(*(round(float(value), 3) for value in values))
