"""Victims that go together: the pods of a group that is not to be disrupted in part, or one pod alone.

Source: pkg/scheduler/framework/preemption/types.go newDomainForWorkloadPreemption, newVictim (Kubernetes
v1.36).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from berth.framework.mirrors.listers import Store
from berth.objects.pod_groups import PodGroup
from berth.preemption.candidates import Candidate
from berth.preemption.victims import Seniority
from berth.snapshot.pod_group_states import GroupKey, group_of
from berth.snapshot.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that are evicted together or not at all, and how important they are."""

    pods: Sequence[PodInfo]
    priority: int

    def importance(self, seniority: Seniority) -> tuple[int, bool, int, tuple[float, str]]:
        """What sorts the more important unit first: priority, groups, larger ones, older ones."""
        grouped = group_of(self.pods[0].pod) is not None
        size = len(self.pods) if grouped else 0
        return -self.priority, not grouped, -size, min(seniority.rank(info.pod) for info in self.pods)


def candidate_of(name: str, gone: Sequence[Unit], violations: int) -> Candidate:
    """The candidate of that name for which these units have to go, the most important first."""
    grouped = sum(group_of(unit.pods[0].pod) is not None for unit in gone)
    return Candidate(name, tuple(info.pod for unit in gone for info in unit.pods), violations, grouped)


def victim_units(placed: Iterable[PodInfo], groups: Store[PodGroup], preemptor: PodGroup) -> list[Unit]:
    """The units less important than the group that preempts; its own pods are none of them.

    A group's priority counts for its pods, also where these go one by one: upstream v1.36 takes the pod's own
    for those (kubernetes/kubernetes#139030).
    """
    own, priority = GroupKey(preemptor.namespace, preemptor.name), preemptor.spec.priority or 0
    together: dict[str, tuple[PodGroup, list[PodInfo]]] = {}
    units: list[Unit] = []
    for info in placed:
        key = group_of(info.pod)
        if key == own:
            continue
        group = None if key is None else groups.get(key.name, key.namespace)
        if group is None:
            units.append(Unit((info,), info.pod.priority))
        elif not group.spec.disrupted_as_a_whole:
            units.append(Unit((info,), group.spec.priority or 0))
        else:
            together.setdefault(group.uid, (group, []))[1].append(info)
    units += [Unit(pods, group.spec.priority or 0) for group, pods in together.values()]
    return [unit for unit in units if unit.priority < priority]
