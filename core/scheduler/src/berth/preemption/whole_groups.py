"""Groups that are evicted as a whole for a single pod: what has to go from a node with pods of such groups.

A group with disruptionMode `all` goes with its pods on all nodes, or stays. Only the node that is tried
changes; plugins whose state follows pods are notified of those on other nodes. Nodes without pods of such
groups are tried side by side (dry_run.py).

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go SelectVictimsOnNode
(Kubernetes v1.37).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.mirrors.group_trees import GroupTrees, key_of
from berth.framework.status import PluginError, Status
from berth.preemption.candidates import Candidate
from berth.preemption.screening import LowerPriorityPods
from berth.preemption.trial import PreemptionTrial, ReprieveTurns
from berth.preemption.units import Unit, candidate_of
from berth.preemption.victims import CompiledBudgets, Seniority
from berth.snapshot.pod_group_states import AnyKey, PodGroupStates, TreeKey, group_of
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

ONE_ROW = np.ones(1, dtype=bool)


class WholeGroups(msgspec.Struct, frozen=True):
    """The groups that are evicted as a whole, and their pods on nodes."""

    trees: GroupTrees
    states: PodGroupStates

    def of(self, info: PodInfo) -> AnyKey | None:
        """The topmost group as a whole of which the pod is evicted, None for a pod that goes alone."""
        key = group_of(info.pod)
        path = () if key is None else self.trees.path(key)
        return next((key_of(group) for group in reversed(path) if group.spec.disrupted_as_a_whole), None)

    def meet(self, infos: Iterable[PodInfo]) -> bool:
        """Whether one of the pods is of such a group."""
        return any(self.of(info) is not None for info in infos)

    def units(self, infos: Iterable[PodInfo], nodes: Snapshot, known: dict[AnyKey, Unit]) -> Iterator[Unit]:
        """The units that these pods of one node are in, each once, with the pods on other nodes.

        `known` keeps those of groups from one node of an attempt to the next. Cost: O(pods of the groups)
        where they are not known.
        """
        seen: set[AnyKey] = set()
        for info in infos:
            key = self.of(info)
            if key is None:
                yield Unit((info,), info.pod.priority)
            elif key not in seen:
                seen.add(key)
                if key not in known:
                    # The group's last pod may have gone since the attempt began.
                    pods = tuple(self._pods(key, nodes)) or (info,)
                    priority = max(each.pod.priority for each in pods)
                    known[key] = Unit(pods, priority, isinstance(key, TreeKey))
                yield known[key]

    def _pods(self, key: AnyKey, nodes: Snapshot) -> Iterator[PodInfo]:
        below = (self.states.known(leaf).scheduled for leaf in self.trees.leaves(key))
        for pod in (pod for pods in below for pod in pods):
            row = nodes.row_of.get(pod.node_name)
            info = None if row is None else nodes.pods[row].get(pod.uid)
            if info is not None:
                yield info


class _Node(msgspec.Struct, frozen=True):
    """One node without its less important units; `turns` are those of its pods, by UID."""

    trial: PreemptionTrial
    attempt: Attempt
    turns: Mapping[str, int]

    def come(self, unit: Unit, sign: int) -> None:
        """Bring all pods of a unit back (1), or take them again (-1)."""
        for turn in (self.turns[info.uid] for info in unit.pods if info.uid in self.turns):
            if sign > 0:
                self.trial.bring_back(turn, ONE_ROW)
            else:
                self.trial.take_again(turn, ONE_ROW)
        self.notify_of_others(unit, sign)

    def notify_of_others(self, unit: Unit, sign: int) -> None:
        """Let plugins know that the unit's pods on other nodes come (1) or go (-1).

        Cost: O(pods of the unit) where a plugin's state follows pods.
        """
        nodes = self.attempt.nodes
        for info in unit.pods if self.trial.follows else ():
            if info.uid not in self.turns:
                row = nodes.row_of[info.pod.node_name]
                self.trial.follow_on_other_node(nodes.view(np.array([row])), info, sign)

    async def fits(self) -> bool:
        """Whether the pod fits as things are; where a plugin fails it does not."""
        try:
            return bool((await self.trial.fits(ONE_ROW, Diagnosis(self.trial.table.names)))[0])
        except PluginError:
            return False


class UnitDryRun(msgspec.Struct, frozen=True):
    """Tries one node after the other whose pods are in units."""

    whole: WholeGroups
    beneath: LowerPriorityPods
    budgets: CompiledBudgets
    seniority: Seniority
    known: dict[AnyKey, Unit] = msgspec.field(default_factory=dict)
    """The units of groups that were met so far, in one attempt."""

    async def run(self, trial: PreemptionTrial, attempt: Attempt) -> Candidate | Status | None:
        """The victims of the trial's only node, or why there are none; None where no unit may go.

        Raises: PluginError where a plugin fails while all units are gone.
        """
        (name,) = trial.table.names
        potential = self.beneath.potential(attempt.nodes.row_of[name], self.seniority)
        every = list(self.whole.units(potential.infos, attempt.nodes, self.known))
        units = [unit for unit in every if unit.priority < self.beneath.priority]
        if not units:
            return None
        units.sort(key=lambda unit: unit.importance(self.seniority))
        here = {info.uid for info in potential.infos}
        local = [info for unit in every for info in unit.pods if info.uid in here]
        trial.begin(ReprieveTurns.of([local], [potential.amounts_of(local)]))
        node = _Node(trial, attempt, {info.uid: turn for turn, info in enumerate(local)})
        for unit in every:
            if unit.priority >= self.beneath.priority:
                node.come(unit, 1)
        diagnosis = Diagnosis([name])
        for unit in units:
            node.notify_of_others(unit, -1)
        if not (await trial.fits(ONE_ROW, diagnosis))[0]:
            return diagnosis.statuses()[0]
        return await self._reprieved(node, name, units)

    async def _reprieved(self, node: _Node, name: str, units: Sequence[Unit]) -> Candidate:
        """What has to go once whatever can stay is back, those first whose eviction violates a budget."""
        violations = self.budgets.violated_by((unit.pods for unit in units), whole_units=True)
        counted = sorted(zip(units, violations, strict=True), key=lambda each: not each[1])
        gone: list[Unit] = []
        violating = 0
        for unit, count in counted:
            node.come(unit, 1)
            if not await node.fits():
                node.come(unit, -1)
                gone.append(unit)
                violating += count
        gone.sort(key=lambda unit: unit.importance(self.seniority))
        return candidate_of(name, gone, violating)
