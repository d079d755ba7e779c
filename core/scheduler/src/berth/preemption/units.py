"""Victims that go together: the pods of a group that is not to be disrupted in part, or one pod alone.

Source: pkg/scheduler/framework/preemption/types.go newDomainForWorkloadPreemption, newVictim (Kubernetes
v1.36).
"""

from collections.abc import Iterable, Sequence

import msgspec

from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of
from berth.preemption.candidates import Candidate
from berth.preemption.victims import Seniority
from berth.snapshot.pod_group_states import AnyKey, TreeKey, group_of
from berth.snapshot.pod_info import PodInfo


class Unit(msgspec.Struct, frozen=True):
    """Pods that are evicted together or not at all, and how important they are."""

    pods: Sequence[PodInfo]
    priority: int
    is_tree: bool = False
    """Whether it is all of a CompositePodGroup."""

    def importance(self, seniority: Seniority) -> tuple[int, bool, bool, int, tuple[float, str]]:
        """What sorts the more important unit first: priority, trees, groups, larger ones, older ones."""
        grouped = group_of(self.pods[0].pod) is not None
        size, tree = len(self.pods) if grouped else 0, self.is_tree and seniority.trees_first
        oldest = min(seniority.rank(info.pod) for info in self.pods)
        return -self.priority, not tree, not grouped, -size, oldest


def candidate_of(name: str, gone: Sequence[Unit], violations: int) -> Candidate:
    """The candidate of that name for which these units have to go, the most important first."""
    grouped = sum(group_of(unit.pods[0].pod) is not None for unit in gone)
    return Candidate(name, tuple(info.pod for unit in gone for info in unit.pods), violations, grouped)


def victim_units(placed: Iterable[PodInfo], trees: GroupTrees, preemptor: AnyGroup) -> list[Unit]:
    """The units less important than the group that preempts; its own pods are none of them.

    The topmost group that is disrupted as a whole goes with all pods below it; the root's priority counts.

    A group's priority counts for its pods, also where these go one by one: upstream v1.36 takes the pod's own
    for those (kubernetes/kubernetes#139030).
    """
    own, priority = frozenset(trees.leaves(key_of(preemptor))), preemptor.spec.priority or 0
    together: dict[AnyKey, tuple[int, list[PodInfo]]] = {}
    units: list[Unit] = []
    for info in placed:
        key = group_of(info.pod)
        if key in own:
            continue
        path = () if key is None else trees.path(key)
        whole = next((group for group in reversed(path) if group.spec.disrupted_as_a_whole), None)
        if not path:
            units.append(Unit((info,), info.pod.priority))
        elif whole is None:
            units.append(Unit((info,), path[-1].spec.priority or 0))
        else:
            together.setdefault(key_of(whole), (path[-1].spec.priority or 0, []))[1].append(info)
    units += [Unit(pods, of_root, isinstance(key, TreeKey)) for key, (of_root, pods) in together.items()]
    return [unit for unit in units if unit.priority < priority]
