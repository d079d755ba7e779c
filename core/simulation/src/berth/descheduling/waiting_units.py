"""What waits for room: pods by themselves, and pods of a group, which get it together or not at all.

Called by: simulated_cluster, which tries them on what a move leaves; strategies that make room for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.queue.pools.pod_kinds import like
from berth.simulation.placing.group_placing import GroupPlacing
from berth.snapshot.pod_group_states import GroupKey

MAX_WAITING: Final = 100
"""This many kinds of what waits are tried for the room that a pod leaves, those of high priority first."""

Kind = PodTemplate | str | GroupKey


class WaitingUnit(msgspec.Struct, frozen=True):
    """A pod that waits, or the waiting pods of a group."""

    pods: tuple[Pod, ...]
    group: GroupKey | None = None

    @property
    def name(self) -> str:
        """As users know it."""
        if self.group is not None:
            return f"pod group {self.group}"
        return f"pod {self.pods[0].key}"

    @property
    def priority(self) -> int:
        """That of its least pod."""
        return min(pod.priority for pod in self.pods)

    @property
    def kind(self) -> Kind:
        """What units share that fit alike; a nominated pod has room that others do not see."""
        if self.group is not None:
            return self.group
        (pod,) = self.pods
        return pod.uid if pod.nominated_node_name else like(pod)


class WaitingUnits:
    """Those of a cluster, of high priority first; pods leave as they get a node."""

    def __init__(self, pods: Iterable[Pod], groups: GroupPlacing) -> None:
        self._groups = groups
        self._pods = {pod.uid: pod for pod in sorted(pods, key=lambda pod: -pod.priority)}
        kinds = {unit.kind for unit in self.without(())}
        self.untried = max(0, len(kinds) - MAX_WAITING)
        """How many kinds are never tried for the room that a move leaves."""

    def without(self, done: Iterable[str]) -> Iterator[WaitingUnit]:
        """Those that still wait, but for pods of these UIDs."""
        has_place = frozenset(done)
        grouped: dict[GroupKey, list[Pod]] = {}
        units: list[Pod | GroupKey] = []
        for pod in self._pods.values():
            if pod.uid in has_place:
                continue
            key = self._groups.key_of(pod)
            if key is None:
                units.append(pod)
                continue
            if key not in grouped:
                units.append(key)
            grouped.setdefault(key, []).append(pod)
        for each in units:
            if isinstance(each, Pod):
                yield WaitingUnit((each,))
            else:
                yield WaitingUnit(tuple(grouped[each]), each)

    def waits(self, pod: Pod) -> bool:
        """Whether the pod has no node still."""
        return pod.uid in self._pods

    def settle(self, pod: Pod) -> None:
        """The pod has a node for good."""
        del self._pods[pod.uid]

    async def placed(self, unit: WaitingUnit) -> Sequence[Pod]:
        """The pods of a group that may go, on their nodes; none where it would wait still."""
        assert unit.group is not None, "a pod alone is tried by the simulated cluster"
        return await self._groups.tried(unit.group, unit.pods)
