"""Pods decided on one after the other, each as in a scheduling cycle of its own, and taken back at will.

    pod --> decision on the class's known answers --> assumed, Reserve --> the next pod

A pod is neither queued nor bound, and nothing is preempted for it: that makes a decision cost some tens of
microseconds. Nodes can join and go between two pods.

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
    """A pod that counts on its node, and what its Reserve plugins need to let go of it."""

    pod: Pod
    framework: Framework
    state: CycleState
    record: CycleRecord

    @property
    def node(self) -> str:
        """The node's name."""
        return self.pod.node_name


class Left(NamedTuple):
    """A pod that has no node, and why; the message is kube-scheduler's."""

    pod: Pod
    status: Status


class OneByOne:
    """Places pods in a simulation in which everything has happened."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._core = simulation.core
        self.now = simulation.clock.wall()

    async def place(self, pod: Pod, only: str | None = None) -> Placed | Status:
        """Decide on the pod: it counts on its node from now on, or the status says why it has none.

        `only` is the one node that it may go to, None where it may go to any.
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
        """Let the pod count on its node; not if a Reserve plugin says no."""
        self._core.cache.assume_pod(placed.pod)
        reserved = await placed.framework.run_reserve(placed.state, placed.pod, placed.node, placed.record)
        if not reserved.ok:
            await self.take_back(placed)
        return reserved

    async def _over(self, record: CycleRecord, status: Status) -> Status:
        """Let sidecars hear of the attempt's end."""
        if self._simulation.plugins.present:
            self._core.schedule_one.attempts.end(record, status)
            await asyncio.sleep(0)
            if not status.ok:
                self._simulation.plugins.hide(record.pod)
        return status

    async def take_back(self, placed: Placed) -> None:
        """Let the pod count no more; Reserve plugins let go of what they held for it."""
        await placed.framework.run_unreserve(placed.state, placed.pod, placed.node, placed.record)
        self._core.cache.forget_pod(placed.pod)
        self._simulation.plugins.hide(placed.pod)

    def add(self, node: Node) -> None:
        """Let the node join; its name is one that no other node has."""
        self._simulation.put(node)
        self._simulation.state.deliver()

    def remove(self, node: Node) -> None:
        """Let the node go, which has no pods.

        Where nodes go in the reverse order of their coming, the others keep their places.
        """
        self._simulation.remove(node)
        self._simulation.state.deliver()


def on_running(
    cluster: ClusterInput,
    options: SimulationOptions,
    then: Callable[[Simulation], Coroutine[Any, Any, T]],
    pace: Pace = nullcontext,
) -> T:
    """What `then` finds out with the cluster's running pods on their nodes; its pending ones are left out.

    No plugin makes room for pods. To build the cluster is one step of `pace`.
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
    """The same with no plugin that makes room."""
    profiles = tuple(
        msgspec.structs.replace(profile, points={**profile.points, ExtensionPoint.POST_FILTER: ()})
        for profile in options.loaded.profiles
    )
    loaded = msgspec.structs.replace(options.loaded, profiles=profiles)
    return msgspec.structs.replace(options, loaded=loaded, plugins=options.plugins.without_post_filter())


def check_ours(pod: Pod, profiles: Collection[str]) -> None:
    """Refuse a pod that the scheduler does not decide on. Raises: InputError."""
    if pod.spec.scheduler_name not in profiles:
        known = ", ".join(sorted(profiles))
        raise InputError(
            f"Pod {pod.key}: spec.schedulerName: found {pod.spec.scheduler_name!r}; there are {known}"
        )
    if pod.spec.scheduling_gates:
        raise InputError(
            f"Pod {pod.key}: spec.schedulingGates: a gated pod is never tried; take the gates out"
        )


def check_alone(pod: Pod, profiles: Collection[str]) -> None:
    """Refuse a pod that is not decided on by itself. Raises: InputError."""
    check_ours(pod, profiles)
    if pod.spec.scheduling_group is not None:
        raise InputError(
            f"Pod {pod.key}: spec.schedulingGroup: pods are tried one by one; take the group out"
        )
