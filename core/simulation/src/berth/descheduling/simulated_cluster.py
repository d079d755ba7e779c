"""The cluster as a plan has it so far, before the scheduler's own engine: who may stand where, and who would.

    simulation, pending pods scheduled ──► SimulatedCluster
        take_out, put_in    on trial, taken back together
        chosen(pod)         the engine's choice
        move(pod, node)     for good

Only the snapshot knows of trials, as in a pod-group cycle.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import msgspec
import numpy as np

from berth.descheduling.waiting_units import MAX_WAITING, Kind, WaitingUnit, WaitingUnits
from berth.explain.trying import Trying
from berth.framework.attempts.cycle_budget import UNMETERED
from berth.framework.runtime import Framework, ProfilePlugins
from berth.objects.node import Node
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod import Pod, PodStatus
from berth.objects.pods.pod_template import PodTemplate
from berth.simulation.placing.group_placing import GroupPlacing
from berth.simulation.placing.one_by_one import OneByOne
from berth.simulation.running.engine import Simulation
from berth.simulation.running.outcome import UNSCHEDULABLE
from berth.snapshot.columns.growing import Mask
from berth.snapshot.pod_group_states import GroupKey
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

ANEW: Final = "-anew"


class ChosenNodes(msgspec.Struct, frozen=True):
    """Where the scheduler would put a pod: any of these nodes, which score best alike; or why nowhere."""

    nodes: tuple[str, ...] = ()
    message: str = ""


class SimulatedCluster:
    """A simulated cluster that pods are moved in."""

    def __init__(self, simulation: Simulation, *, now: datetime) -> None:
        self.now = now
        self.core = simulation.core
        self._state = simulation.state
        self._trying = Trying(self.core.queue.nominator)
        self._alone: dict[tuple[str, str], Framework] = {}
        self._by_nodes: dict[tuple[str, str, PodTemplate], Mask] = {}
        self._by_kind: dict[tuple[str, str, PodTemplate], Mask | None] = {}
        self.pods: dict[str, Pod] = {pod.key: pod for pod in self._state.all(Pod) if pod.node_name}
        """The pods on nodes, by key."""
        self._groups = {group.key: group for group in self._state.all(PodGroup)}
        self.nodes: dict[str, Node] = {node.name: node for node in self._state.all(Node)}
        unplaced = {each.pod for each in simulation.outcome().pending if each.reason == UNSCHEDULABLE}
        waiting = [pod for pod in self._state.all(Pod) if pod.key in unplaced]
        self.waiting = WaitingUnits(waiting, GroupPlacing(simulation, OneByOne(simulation)))
        self._refresh()

    @property
    def snapshot(self) -> Snapshot:
        """The nodes and their pods, with what is on trial."""
        return self.core.snapshot

    def topology_key(self, group: GroupKey | None) -> str:
        """The label by which the group's pods go together; empty where they may be anywhere."""
        found = None if group is None else self._groups.get(str(group))
        constraints = None if found is None else found.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    def framework(self, pod: Pod) -> Framework | None:
        """The profile that schedules the pod, if there is one."""
        return self.core.profiles.frameworks.get(pod.spec.scheduler_name)

    # Trials.

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Take back whatever is tried inside."""
        before = self.core.cache.trials
        try:
            yield
        finally:
            self.core.cache.undo_trials(self.snapshot, before)

    def take_out(self, pod: Pod) -> None:
        """Try how it is without a pod."""
        info = self.snapshot.pods[self.snapshot.row_of[pod.node_name]][pod.uid]
        self.core.cache.try_pod(self.snapshot, -1, info)

    def put_in(self, pod: Pod, node: str) -> None:
        """Try how it is with the pod on that node."""
        self.core.cache.try_pod(self.snapshot, 1, PodInfo(pod.placed_on(node)))

    async def place_waiting(self, done: Sequence[Pod]) -> list[Pod]:
        """Try to place what waits for room: it comes before a pod that is made anew.

        Those that are `done` have their place. Of units that are alike none is tried once one found no place,
        and of those that found none there are at most MAX_WAITING: anyone may create pods that fit nowhere.
        """
        placed: list[Pod] = []
        refused: set[Kind] = set()
        for unit in self.waiting.without(pod.uid for pod in done):
            if len(refused) == MAX_WAITING:
                break
            if unit.kind in refused:
                continue
            found = await self.placed(unit)
            placed += found
            if not found:
                refused.add(unit.kind)
        return placed

    async def placed(self, unit: WaitingUnit) -> Sequence[Pod]:
        """Try to place what waits; its pods on their nodes, none where it would wait still."""
        if unit.group is not None:
            found = await self.waiting.placed(unit)
        else:
            (pod,) = unit.pods
            chosen = await self.chosen(pod)
            found = [pod.placed_on(chosen.nodes[0])] if chosen.nodes else []
        for pod in found:
            self.put_in(pod, pod.node_name)
        return found

    # What the engine says.

    async def chosen(self, pod: Pod) -> ChosenNodes:
        """Where the scheduler would put the pod, as one that has no node."""
        framework = self.framework(pod)
        if framework is None:
            return ChosenNodes(message=f"schedulerName {pod.spec.scheduler_name!r} is of no profile here")
        tried = await self._trying.tried(framework, pod, self.snapshot, UNMETERED)
        scores = tried.scores
        if scores is None or not scores.rows.size:
            return ChosenNodes(message=tried.message or "the pod fits on no node")
        best = scores.rows[scores.totals == scores.totals.max()]
        names = self.snapshot.names
        return ChosenNodes(tuple(sorted([names[row] for row in best.tolist()])))

    async def fits_on(self, pod: Pod, node: str) -> bool:
        """Whether every plugin lets the pod be on that node."""
        framework = self.framework(pod)
        if framework is None:
            return False
        found = await self._trying.filtered(framework, pod, self.snapshot, UNMETERED)
        return bool(found.fits[self.snapshot.row_of[node]])

    async def allowed_by(self, plugin: str, pod: Pod) -> Mask | None:
        """Where that plugin alone lets the pod be, None where the pod's profile does not run it.

        Shapes: result bool (n,).
        """
        framework = self._alone_of(plugin, pod)
        if framework is None:
            return None
        return (await self._trying.filtered(framework, pod, self.snapshot, UNMETERED)).fits

    async def another_allowed_by(self, plugin: str, pod: Pod) -> Mask | None:
        """The same for one pod more of its kind, asked once for all of them until a pod moves."""
        key = plugin, pod.spec.scheduler_name, pod.template
        if key not in self._by_kind:
            self._by_kind[key] = await self.allowed_by(plugin, pod)
        return self._by_kind[key]

    async def allowed_by_nodes(self, plugin: str, pod: Pod) -> Mask | None:
        """The same for a plugin that looks at no other pod: asked once for all pods that are alike."""
        key = plugin, pod.spec.scheduler_name, pod.template
        if key not in self._by_nodes:
            mask = await self.allowed_by(plugin, pod)
            if mask is None:
                return None
            self._by_nodes[key] = mask
        return self._by_nodes[key]

    async def asked(self, plugin: str, pod: Pod) -> tuple[Mask, str]:
        """Where that plugin alone lets the pod be, and what it has against its node; empty where nothing.

        Shapes: result bool (n,).
        """
        framework = self._alone_of(plugin, pod)
        if framework is None:
            return np.ones(len(self.snapshot), dtype=bool), ""
        tried = await self._trying.filtered(framework, pod, self.snapshot, UNMETERED)
        row = self.snapshot.row_of[pod.node_name]
        if tried.fits[row]:
            return tried.fits, ""
        return tried.fits, tried.message if tried.broken else tried.diagnosis.node_status(row).message

    def _alone_of(self, plugin: str, pod: Pod) -> Framework | None:
        framework = self.framework(pod)
        if framework is None or plugin not in framework.plugins.by_name:
            return None
        key = framework.profile_name, plugin
        if key not in self._alone:
            self._alone[key] = _alone(framework, plugin)
        return self._alone[key]

    # What is so from now on.

    def move(self, pod: Pod, node: str) -> None:
        """Let the pod be made anew, on that node; without a node it is gone."""
        self._state.remove(pod)
        self.pods.pop(pod.key, None)
        if node:
            self._place(anew(pod, self.now), node)
        self._refresh()

    def settle(self, pod: Pod) -> None:
        """Let a pod that waited be on the node that it names."""
        self.waiting.settle(pod)
        self._place(pod, pod.node_name)
        self._refresh()

    def _place(self, pod: Pod, node: str) -> None:
        self.pods[pod.key] = self._state.put(pod.placed_on(node))

    def _refresh(self) -> None:
        self._by_kind.clear()
        self._state.deliver()
        self.core.cache.update_snapshot(self.snapshot)

    # What it is like.

    def on(self, node: str) -> list[Pod]:
        """The pods of a node, by key."""
        infos = self.snapshot.pods[self.snapshot.row_of[node]].values()
        return sorted((info.pod for info in infos), key=lambda pod: pod.key)

    def use(self, resource: str) -> dict[str, float]:
        """The percentage of the resource that is asked for on each node that offers any."""
        snapshot = self.snapshot
        if resource == "pods":
            counts, offered = snapshot.pod_count, snapshot.allowed_pods
        else:
            found = snapshot.offered(resource)
            if found is None:
                return {}
            counts, offered = snapshot.held(resource), found
        pairs = zip(snapshot.names, counts.tolist(), offered.tolist(), strict=True)
        return {name: 100 * held / there for name, held, there in pairs if there}


def anew(pod: Pod, now: datetime) -> Pod:
    """The pod that its owner makes in place of this one: of the same template, under another UID."""
    metadata = msgspec.structs.replace(
        pod.metadata,
        uid=f"{pod.uid}{ANEW}",
        creation_timestamp=now.astimezone(UTC),
        deletion_timestamp=None,
    )
    return Pod(metadata=metadata, template=pod.template, status=PodStatus(phase="Running", start_time=now))


def _alone(framework: Framework, name: str) -> Framework:
    own = framework.plugins
    plugins = ProfilePlugins(
        pre_filter=[plugin for plugin in own.pre_filter if plugin.name == name],
        filter=[plugin for plugin in own.filter if plugin.name == name],
    )
    plugins.by_name = {name: own.by_name[name]}
    return Framework(framework.profile_name, plugins, percentage_of_nodes_to_score=0)
