"""What came of a simulation, as plain values that JSON can hold."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from berth.simulation.plugin_calls import PluginUse
from berth.snapshot.snapshot import Snapshot

API_VERSION: Final = "simulation.berth.dev/v1alpha1"
PERCENTILES: Final = (50, 90, 99)

USUAL: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""Resources that every cluster has."""

GATED: Final = "SchedulingGated"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "SchedulerError"
NO_PROFILE: Final = "NoProfile"
WAITING: Final = "Waiting"


class Placement(msgspec.Struct, rename="camel", frozen=True, gc=False, order=True):
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


class Preemption(msgspec.Struct, rename="camel", frozen=True, gc=False, order=True):
    """A pod that had to go, and for whom. Units: virtual seconds."""

    pod: str
    node: str
    by: str
    at_seconds: float


class Use(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """How much of a resource there is, and how much of it is asked for; cpu in thousandths."""

    allocatable: int
    requested: int
    percent: float


class Waits(msgspec.Struct, rename="camel", frozen=True):
    """How long pods waited for their node. Units: virtual seconds."""

    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


class Outcome(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
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
    placements: list[Placement]
    pending: list[PendingPod]
    preemptions: list[Preemption]
    utilization: dict[str, Use]
    fragmentation: dict[str, float]
    """The percentage of what is free that no pod could use, by resource."""
    waits: Waits
    left_out: dict[str, int] = {}
    """Objects of the input that no decision reads and no plugin was shown, by kind."""
    plugins: list[PluginUse] = []
    """Those in other processes, and extenders."""

    @property
    def placed_on(self) -> dict[str, str]:
        """The node of each pod that got one."""
        return {each.pod: each.node for each in self.placements}


def utilization(nodes: Snapshot, extended: Iterable[str]) -> dict[str, Use]:
    """What is asked for of each resource that nodes offer; `extended` are those beside the usual ones.

    A cordoned node counts neither with what it offers nor with what its pods ask for.
    """
    found: dict[str, Use] = {}
    counted = ~nodes.unschedulable
    for name in ("cpu", "memory", "ephemeral-storage", *sorted(extended)):
        offered = nodes.offered(name)
        allocatable = 0 if offered is None else sum(offered[counted].tolist())
        if allocatable:
            requested = sum(nodes.held(name)[counted].tolist())
            found[name] = Use(allocatable, requested, round(100 * requested / allocatable, 3))
    return found


def waits_of(seconds: Sequence[float]) -> Waits:
    """The percentiles of these waits."""
    if not seconds:
        return Waits()
    values = np.percentile(np.array(seconds), [*PERCENTILES, 100], method="higher")
    return Waits(*(round(float(value), 3) for value in values))
