"""Schedules pods one after the other, each as in a scheduling cycle; each can be undone.

    pod --> decision, with the equivalence cache --> assumed, Reserve --> the next pod

A pod is neither queued nor bound, and nothing is preempted for it, so a decision costs some tens of
microseconds. Nodes can be added and removed between two pods.

Called by: fill, growing_cluster, group_placing.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, Status
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.running.engine import Simulation, after
from berth.simulation.running.options import SimulationOptions

T = TypeVar("T")
Pace = Callable[[], AbstractContextManager[None]]
"""Entered for each step, so that others have their turn between two; what it raises ends the work."""


class Placed(msgspec.Struct, frozen=True):
    """An assumed pod, and the cycle state that Unreserve needs."""

    pod: Pod
    framework: Framework
    state: CycleState
    record: CycleRecord

    @property
    def node(self) -> str:
        """The node's name."""
        return self.pod.node_name


class Left(NamedTuple):
    """A pod without a node, and the reason; the message is kube-scheduler's."""

    pod: Pod
    status: Status


class OneByOne:
    """Places pods in a finished simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._core = simulation.core
        self.now = simulation.clock.wall()

    async def place(self, pod: Pod, only: str | None = None) -> Placed | Status:
        """Schedule the pod: it is assumed from now on, or the status says why no node fits.

        `only` restricts the choice to that node.
        """
        core, cycle = self._core, self._core.schedule_one
        self._simulation.plugins.show(pod)
        framework = core.profiles.frameworks[pod.spec.scheduler_name]
        record = cycle.attempts.begin(QueuedPodInfo(pod, self.now), framework.profile_name)
        core.cache.update_snapshot(core.snapshot)
        state = CycleState()
        state.write(CycleRecord, record)
        within = None if only is None else np.array([core.snapshot.row_of[only]])
        attempt = Attempt(pod, core.snapshot, state, record, within)
        decision = await cycle.algorithm.decide(framework, attempt)
        if not decision.status.ok:
            return await self._over(record, decision.status)
        placed = Placed(pod.placed_on(decision.node_name), framework, state, record)
        reserved = await self.keep(placed)
        if not reserved.ok:
            return await self._over(record, reserved)
        record.node_name = placed.node
        await self._over(record, SUCCESS)
        return placed

    async def keep(self, placed: Placed) -> Status:
        """Assume the pod and run Reserve; a rejection by a Reserve plugin undoes it."""
        self._core.cache.assume_pod(placed.pod)
        reserved = await placed.framework.run_reserve(placed.state, placed.pod, placed.node, placed.record)
        if not reserved.ok:
            await self.take_back(placed)
        return reserved

    async def _over(self, record: CycleRecord, status: Status) -> Status:
        """Tell sidecars that the attempt has ended."""
        if self._simulation.plugins.present:
            self._core.schedule_one.attempts.end(record, status)
            await asyncio.sleep(0)
            if not status.ok:
                self._simulation.plugins.hide(record.pod)
        return status

    async def take_back(self, placed: Placed) -> None:
        """Undo: run Unreserve and forget the pod."""
        await placed.framework.run_unreserve(placed.state, placed.pod, placed.node, placed.record)
        self._core.cache.forget_pod(placed.pod)
        self._simulation.plugins.hide(placed.pod)

    def add(self, node: Node) -> None:
        """Add the node, whose name is new."""
        self._simulation.put(node)
        self._simulation.state.deliver()

    def remove(self, node: Node) -> None:
        """Remove the node, which has no pods.

        If nodes are removed in the reverse order of their addition, the rows of the others stay the same.
        """
        self._simulation.remove(node)
        self._simulation.state.deliver()


def on_running(
    cluster: ClusterInput,
    options: SimulationOptions,
    then: Callable[[Simulation], Coroutine[Any, Any, T]],
    pace: Pace = nullcontext,
) -> T:
    """The result of `then` on the cluster with its running pods; its pending pods are left out.

    PostFilter is not run. Building the cluster is one step of `pace`.
    Raises: InputError, PluginsError, BuildError, and what `pace` and `then` raise.
    """
    building = ExitStack()

    async def run(simulation: Simulation) -> T:
        building.close()
        return await then(simulation)

    with building:
        building.enter_context(pace())
        return after(cluster.running(), without_post_filter(options), run)


def without_post_filter(options: SimulationOptions) -> SimulationOptions:
    """The configuration without PostFilter plugins."""
    profiles = tuple(
        msgspec.structs.replace(profile, points={**profile.points, ExtensionPoint.POST_FILTER: ()})
        for profile in options.loaded.profiles
    )
    loaded = msgspec.structs.replace(options.loaded, profiles=profiles)
    return msgspec.structs.replace(options, loaded=loaded, plugins=options.plugins.without_post_filter())


def check_scheduler_name(pod: Pod, profiles: Collection[str]) -> None:
    """Refuse a pod that no profile of the scheduler schedules. Raises: InputError."""
    if pod.spec.scheduler_name not in profiles:
        known = ", ".join(sorted(profiles))
        raise InputError(
            f"Pod {pod.key}: spec.schedulerName: found {pod.spec.scheduler_name!r}; there are {known}"
        )
    if pod.spec.scheduling_gates:
        raise InputError(
            f"Pod {pod.key}: spec.schedulingGates: a gated pod is never tried; take the gates out"
        )


def check_not_grouped(pod: Pod, profiles: Collection[str]) -> None:
    """Refuse a pod of a group. Raises: InputError."""
    check_scheduler_name(pod, profiles)
    if pod.spec.scheduling_group is not None:
        raise InputError(
            f"Pod {pod.key}: spec.schedulingGroup: pods are tried one by one; take the group out"
        )
