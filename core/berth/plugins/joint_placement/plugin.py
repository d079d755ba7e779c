"""JointPlacement: the best nodes for all pods of a group together, by a mixed-integer program.

Berth's own; off unless a profile enables it. Source: docs/decisions/0033-joint-placement.md.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from berth.config.plugin_args import JointPlacementArgs
from berth.framework.cycle_state import CycleState
from berth.framework.group_plans import GroupPlan, PlanningGround, PodGroupPlanPlugin
from berth.framework.handle import Handle
from berth.framework.interface import PreFilterPlugin, PreFilterResult
from berth.framework.node_scores import NodeScores
from berth.framework.status import SKIP
from berth.objects.pod import Pod
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.joint_placement.candidates import candidates
from berth.plugins.joint_placement.model import Counts, Kind, Model
from berth.plugins.joint_placement.rules import Even, Rule, RuleReader, alone, room_of
from berth.plugins.joint_placement.solving import Bounds, Solver
from berth.snapshot.columns import Ints, Rows
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

MOST_RULES = 256
"""A group whose members require more of each other is placed one by one."""
MOST_COSTED = 8
"""Of so many kinds, the largest, the engine is asked what one pod more on a node costs."""

NOTHING = NodeScores(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64))


class JointPlacement(InTreePlugin, PreFilterPlugin, PodGroupPlanPlugin):
    """Plan pod groups as a whole; a pod that its group's plan names a node for goes there."""

    def __init__(self, args: JointPlacementArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args
        self._solver = Solver()
        self._rules = RuleReader(handle)

    @property
    def most_pods(self) -> int:
        """As configured."""
        return self._args.max_pods

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Narrow the nodes to the one that the plan names."""
        del nodes
        name = _planned(state, pod)
        return PreFilterResult(SKIP) if name is None else PreFilterResult(node_names=frozenset((name,)))

    def sign_pod(self, pod: Pod) -> Hashable:
        """Nothing is read of the pod itself."""
        del pod
        return ()

    def basis(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable:
        """The node that the plan names."""
        del nodes
        return _planned(state, pod)

    async def plan(self, pods: Sequence[Pod], start: GroupPlan, ground: PlanningGround) -> GroupPlan | None:
        """What the solver finds within its bounds, if that is another assignment than the start."""
        try:
            alike = self._rules.kinds(pods)
            rules = self._rules.rules([kind[0] for kind in alike], ground.nodes)
        except ValueError:
            return None  # a selector that does not parse: its plugin says so, pod by pod
        if len(rules) > MOST_RULES:
            return None
        begun = _counts(alike, start.node_of, ground.nodes)
        kinds = await self._look(alike, rules, begun, ground)
        model = Model.of(kinds, rules, ground.nodes)
        bounds = Bounds(self._args.max_branches, min(self._args.time_limit.seconds, ground.seconds_left))
        values = self._solver.solve(model.program, model.values(begun), bounds)
        counts = None if values is None else model.counts(values)
        if not counts or counts == begun:
            return None
        return _as_plan(pods, kinds, counts, rules, ground.nodes)

    async def _look(
        self, alike: Sequence[Sequence[Pod]], rules: Sequence[Rule], begun: Counts, ground: PlanningGround
    ) -> list[Kind]:
        """What the engine says of one pod of each kind, and of the largest kinds' with one pod more."""
        many = sum(len(pods) for pods in alike)
        costed = sorted(range(len(alike)), key=lambda i: -len(alike[i]))[: MOST_COSTED if many > 1 else 0]
        kinds: list[Kind] = []
        for i, pods in enumerate(alike):
            one = alone(pods[0])
            scores = await ground.scores(one) or NOTHING
            wanted = frozenset(row for kind, row in begun if kind == i)
            at = candidates(i, len(pods), many, scores, rules=rules, wanted=wanted)
            requests = PodInfo(one).requests
            rows, totals = scores.rows[at], scores.totals[at]
            most = _room(requests, rows, len(pods), ground.nodes)
            drops = np.full(rows.size, np.nan)
            if i in costed and rows.size:
                drops, fits = await _with_one_more(one, rows, totals, ground)
                most = np.where(fits, most, 1)
            kinds.append(Kind(pods, requests, rows, totals, most, drops))
        return kinds


def _planned(state: CycleState, pod: Pod) -> str | None:
    plan: GroupPlan | None = state.get(GroupPlan)
    return None if plan is None else plan.node_of.get(pod.uid)


def _counts(alike: Sequence[Sequence[Pod]], node_of: Mapping[str, str], nodes: Snapshot) -> Counts:
    counts: dict[tuple[int, int], int] = {}
    for i, pods in enumerate(alike):
        for pod in pods:
            row = nodes.row_of.get(node_of.get(pod.uid, ""))
            if row is not None:
                counts[i, row] = counts.get((i, row), 0) + 1
    return counts


def _room(requests: Mapping[str, int], rows: Rows, many: int, nodes: Snapshot) -> Ints:
    """How many such pods fit on each row, by their requests. Shapes: rows, result (k,)."""
    most: Ints = np.minimum(nodes.allowed_pods[rows] - nodes.pod_count[rows], many)
    for place, name in enumerate(nodes.resource_names):
        asked = requests.get(name, 0)
        if asked > 0:
            fit = (nodes.allocatable[place, rows] - nodes.requested[place, rows]) // asked
            # The engine says that one fits: where the columns say otherwise, it does not go by them.
            most = np.where(fit > 0, np.minimum(most, fit), most)
    room: Ints = np.maximum(most, 1)
    return room


async def _with_one_more(
    pod: Pod, rows: Rows, totals: Ints, ground: PlanningGround
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """How much less the pod scores on a row with one such pod more, and whether it fits there then.

    Shapes: rows, totals, both results (k,).
    """
    names = ground.nodes.names
    for row in rows.tolist():
        ground.place(PodInfo(room_of(pod, f"one-more-{row}").placed_on(names[row])))
    after = await ground.scores(pod) or NOTHING
    ground.take_back()
    at = np.searchsorted(after.rows, rows)
    fits = np.zeros(rows.size, dtype=bool)
    inside = at < after.rows.size
    fits[inside] = after.rows[at[inside]] == rows[inside]
    drops = np.full(rows.size, np.nan)
    drops[fits] = totals[fits] - after.totals[at[fits]]
    return drops, fits


def _as_plan(
    pods: Sequence[Pod], kinds: Sequence[Kind], counts: Counts, rules: Sequence[Rule], nodes: Snapshot
) -> GroupPlan:
    """A node for each pod, in the group's order; pods of one kind take its places evenly by domain."""
    node_of: dict[str, str] = {}
    for i, kind in enumerate(kinds):
        even = next((rule for rule in rules if isinstance(rule, Even) and rule.kind == i), None)
        places = [row for (j, row), count in counts.items() if j == i for _ in range(count)]
        for pod, row in zip(kind.pods, _in_turn(places, even), strict=False):
            node_of[pod.uid] = nodes.names[row]
    return GroupPlan({pod.uid: node_of[pod.uid] for pod in pods if pod.uid in node_of})


def _in_turn(rows: Sequence[int], even: Even | None) -> list[int]:
    """The rows, those of the emptiest domains first as these fill up."""
    filled: dict[int, int] = {}
    turns: list[tuple[int, int]] = []
    for row in rows:
        place = row if even is None else int(even.place_of[row])
        before = 0 if even is None else int(even.pods[place])
        filled[place] = filled.get(place, before) + 1
        turns.append((filled[place], row))
    return [row for _, row in sorted(turns)]
