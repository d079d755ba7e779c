"""RemoveDuplicates: pods of one owner and the same images that share a node, where another has fewer."""

from collections import defaultdict

from berth.config.descheduling.policy import DuplicatesArgs
from berth.descheduling.strategies.strategy import (
    EvictionCandidate,
    EvictionProposal,
    Filter,
    Judge,
    Judgement,
    Scene,
    proposed,
)
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate

Twins = tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]
"""Namespace, owners and images: pods of which these are the same are duplicates."""


class Duplicates:
    """Every move makes the larger count smaller, and no count as large as that was."""

    def __init__(self, args: DuplicatesArgs) -> None:
        self._filter = Filter(args.namespaces)
        self._excluded = args.exclude_owner_kinds

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """All but the first of the duplicates on each node, those of the fullest nodes first."""
        groups: dict[tuple[Twins, str], list[Pod]] = defaultdict(list)
        for pod in scene.simulated.pods.values():
            if self._counts(pod):
                groups[_twins(pod), pod.node_name].append(pod)
        pods = self._filter.among(scene.pods())
        may_move = {pod.uid: place for place, pod in enumerate(pods)}
        found = []
        for (_, node), twins in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            text = f"{len(twins)} pods of its owner are on {node}"
            movable = sorted((pod for pod in twins if pod.uid in may_move), key=lambda pod: may_move[pod.uid])
            found += [EvictionCandidate((pod,), text) for pod in movable[: len(twins) - 1]]
        return proposed(found, pods, "shares its node with another of the same owner and images")

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better where fewer of them are than are left behind."""
        left = _count(scene, pod, pod.node_name)

        def judge(node: str) -> Judgement:
            there = _count(scene, pod, node)
            return Judgement(there < left, f"beside {left} of its owner there, beside {there} on {node}")

        return judge

    def _counts(self, pod: Pod) -> bool:
        kinds = {owner.kind for owner in pod.metadata.owner_references}
        return bool(kinds) and not kinds & self._excluded


def _count(scene: Scene, pod: Pod, node: str) -> int:
    twins, snapshot = _twins(pod), scene.simulated.snapshot
    infos = snapshot.pods[snapshot.row_of[node]].values()
    return sum(_twins(info.pod) == twins for info in infos)


def _twins(pod: Pod) -> Twins:
    return pod.template.derived(_twins_of)


def _twins_of(template: PodTemplate) -> Twins:
    owners = sorted((owner.kind, owner.name) for owner in template.owner_references)
    images = sorted(container.image for container in template.spec.containers)
    return template.namespace, tuple(owners), tuple(images)
