"""From numbers of pods on nodes to a plan: which pod goes where, in an order that the engine can accept."""

from collections.abc import Mapping, Sequence

from berth.framework.group_plans import GroupPlan
from berth.objects.pods.pod import Pod
from berth.plugins.joint_placement.model import Counts, PodKind
from berth.plugins.joint_placement.rules import Even, Near, Rule
from berth.snapshot.snapshot import Snapshot


def counted(alike: Sequence[Sequence[Pod]], node_of: Mapping[str, str], nodes: Snapshot) -> Counts:
    """How many pods of which kind a plan puts on which row."""
    counts: dict[tuple[int, int], int] = {}
    for i, pods in enumerate(alike):
        for pod in pods:
            row = nodes.row_of.get(node_of.get(pod.uid, ""))
            if row is not None:
                counts[i, row] = counts.get((i, row), 0) + 1
    return counts


def as_plan(
    pods: Sequence[Pod], kinds: Sequence[PodKind], counts: Counts, rules: Sequence[Rule], nodes: Snapshot
) -> GroupPlan:
    """A node for each pod; those that others of the group can only follow come first."""
    node_of: dict[str, str] = {}
    first: set[str] = set()
    for i, kind in enumerate(kinds):
        in_turn = _in_turn([row for (j, row), n in counts.items() if j == i for _ in range(n)], i, rules)
        starts = _starts(i, counts, rules)
        rows = [*(row for row in in_turn if row in starts), *(row for row in in_turn if row not in starts)]
        for pod, row in zip(kind.pods, rows, strict=False):
            node_of[pod.uid] = nodes.names[row]
            if row in starts:
                first.add(pod.uid)
    placed = [pod.uid for pod in pods if pod.uid in node_of]
    placed.sort(key=lambda uid: uid not in first)
    return GroupPlan({uid: node_of[uid] for uid in placed})


def _in_turn(rows: Sequence[int], kind: int, rules: Sequence[Rule]) -> list[int]:
    """The rows, those of the emptiest domains first as these fill up."""
    even = next((rule for rule in rules if isinstance(rule, Even) and rule.kind == kind), None)
    filled: dict[int, int] = {}
    turns: list[tuple[int, int]] = []
    for row in rows:
        place = row if even is None else int(even.place_of[row])
        before = 0 if even is None else int(even.pods[place])
        filled[place] = filled.get(place, before) + 1
        turns.append((filled[place], row))
    return [row for _, row in sorted(turns)]


def _starts(kind: int, counts: Counts, rules: Sequence[Rule]) -> frozenset[int]:
    """Where pods of the kind are near none that they seek but themselves: there the first of them all is."""
    starts: set[int] = set()
    for rule in rules:
        if isinstance(rule, Near) and rule.kind == kind and rule.starts:
            place_of = rule.place_of
            others = {int(place_of[row]) for (i, row) in counts if i in rule.sought and i != kind}
            mine = [row for (i, row) in counts if i == kind]
            starts.update(row for row in mine if int(place_of[row]) not in others)
    return frozenset(starts)
