"""Pods on nodes that they would not be placed on for what the node is: its labels and its taints."""

from collections.abc import Mapping
from typing import Final

from berth.config.descheduling.policy import NodeAffinityArgs, NodeTaintsArgs
from berth.config.descheduling.policy_file import PREFERRED, REQUIRED
from berth.descheduling.strategies.strategy import (
    EvictionCandidate,
    EvictionProposal,
    Filter,
    Judge,
    Judgement,
    Scene,
    proposed,
)
from berth.objects.label_selector import InvalidSelectorError
from berth.objects.node import Node
from berth.objects.node_selector import NodeSelector
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.taint import Taint, TaintEffect
from berth.snapshot.node_matching import node_matches

PLUGIN: Final = "NodeAffinity"


class NodeAffinityStrategy:
    """RemovePodsViolatingNodeAffinity: what is required is asked of the profile's own NodeAffinity plugin."""

    def __init__(self, args: NodeAffinityArgs) -> None:
        self._filter = Filter(args.namespaces, args.label_selector)
        self._types = args.node_affinity_type
        self._known: dict[PodTemplate, Mapping[str, int]] = {}

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods whose node does not meet what they require, then those that another node suits better."""
        pods = self._filter.among(scene.pods())
        found = []
        if REQUIRED in self._types:
            found += [
                EvictionCandidate((pod,), f"{pod.node_name} does not meet its node affinity or selector")
                for pod in pods
                if not await self._allowed(scene, pod, pod.node_name)
            ]
        if PREFERRED in self._types:
            found += [
                EvictionCandidate(
                    (pod,), f"another node suits its preferred node affinity better than {pod.node_name}"
                )
                for pod in pods
                if _preferred(pod)
                and self._weights(scene, pod)[pod.node_name] < max(self._weights(scene, pod).values())
            ]
        required = "is on a node that does not meet its node affinity or selector"
        preferred = "would suit another node better by its preferred node affinity"
        kinds = [text for kind, text in ((REQUIRED, required), (PREFERRED, preferred)) if kind in self._types]
        return proposed(found, pods, " or ".join(kinds))

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better where what was wrong is not wrong there."""
        if REQUIRED in self._types and not await self._allowed(scene, pod, pod.node_name):
            allowed, rows = (
                await scene.simulated.allowed_by_nodes(PLUGIN, pod),
                scene.simulated.snapshot.row_of,
            )

            def by_rule(node: str) -> Judgement:
                better = allowed is None or bool(allowed[rows[node]])
                return Judgement(better, f"{node} meets its node affinity")

            return by_rule
        weights = self._weights(scene, pod)
        before = weights[pod.node_name]

        def by_weight(node: str) -> Judgement:
            after = weights[node]
            return Judgement(after > before, f"preferred node affinity {before} there, {after} on {node}")

        return by_weight

    async def _allowed(self, scene: Scene, pod: Pod, node: str) -> bool:
        mask = await scene.simulated.allowed_by_nodes(PLUGIN, pod)
        return mask is None or bool(mask[scene.simulated.snapshot.row_of[node]])

    def _weights(self, scene: Scene, pod: Pod) -> Mapping[str, int]:
        """How much of what the pod prefers each node has."""
        if pod.template not in self._known:
            nodes = scene.simulated.nodes
            self._known[pod.template] = {name: _weight(pod, node) for name, node in nodes.items()}
        return self._known[pod.template]


def _preferred(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return bool(affinity and affinity.node_affinity and affinity.node_affinity.preferred)


def _weight(pod: Pod, node: Node) -> int:
    """How much of what the pod prefers the node has; terms that do not parse count for nothing."""
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity else None
    total = 0
    for term in (node_affinity.preferred if node_affinity else None) or ():
        try:
            matches = node_matches(node, NodeSelector((term.preference,)))
        except InvalidSelectorError:
            continue
        total += term.weight if matches else 0
    return total


class NodeTaints:
    """RemovePodsViolatingNodeTaints: taints that came after the pod."""

    def __init__(self, args: NodeTaintsArgs) -> None:
        self._filter = Filter(args.namespaces, args.label_selector)
        self._included, self._excluded = args.included_taints, args.excluded_taints
        soft = {TaintEffect.PREFER_NO_SCHEDULE} if args.include_prefer_no_schedule else set()
        self._effects = {TaintEffect.NO_SCHEDULE} | soft

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods that do not tolerate a taint of their node."""
        found = []
        pods = self._filter.among(scene.pods())
        for pod in pods:
            taints = self._untolerated(pod, scene.simulated.nodes[pod.node_name])
            if taints:
                named = f"{taints[0].key}:{taints[0].effect}"
                found.append(
                    EvictionCandidate((pod,), f"it does not tolerate {pod.node_name}'s taint {named}")
                )
        effects = " or ".join(sorted(self._effects))
        return proposed(
            found, pods, f"is on a node with a taint that counts ({effects}) and is not tolerated"
        )

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better where fewer taints are untolerated."""
        nodes = scene.simulated.nodes
        before = len(self._untolerated(pod, nodes[pod.node_name]))

        def judge(node: str) -> Judgement:
            after = len(self._untolerated(pod, nodes[node]))
            return Judgement(after < before, f"untolerated taints {before} there, {after} on {node}")

        return judge

    def _untolerated(self, pod: Pod, node: Node) -> list[Taint]:
        if not node.spec.taints:
            return []
        tolerations = pod.spec.tolerations
        counted = (
            taint for taint in node.spec.taints if taint.effect in self._effects and self._counts(taint)
        )
        # Lt and Gt count whatever the feature gate says: a pod that may tolerate its node is left alone.
        return [t for t in counted if not any(each.tolerates(t, comparisons=True) for each in tolerations)]

    def _counts(self, taint: Taint) -> bool:
        spelled = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
        return not spelled & self._excluded and (not self._included or bool(spelled & self._included))
