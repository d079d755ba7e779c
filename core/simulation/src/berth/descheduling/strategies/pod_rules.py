"""Pods on nodes that they would not be placed on for the pods around: anti-affinity and spreading.

Both are the engine's own rules: the pod is taken out on trial, and the plugin is asked about its node.
"""

from typing import Final

import msgspec

from berth.config.descheduling.policy import InterPodAntiAffinityArgs, TopologySpreadArgs
from berth.config.descheduling.policy_file import HARD
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
from berth.objects.pods.pod_template import PodTemplate, interned
from berth.snapshot.affinity_terms import HeldTerm, TermKind
from berth.snapshot.pod_info import PodInfo

AFFINITY: Final = "InterPodAffinity"
SPREAD: Final = "PodTopologySpread"
ANTI_AFFINITY: Final = "anti-affinity"
"""In the reasons of InterPodAffinity that are about staying apart."""


class AntiAffinity:
    """RemovePodsViolatingInterPodAntiAffinity: required terms, the pod's own and those of others."""

    def __init__(self, args: InterPodAntiAffinityArgs) -> None:
        self._filter = Filter(args.namespaces, args.label_selector)

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods that a required term keeps apart from another in the same place."""
        simulated = scene.simulated
        terms = {
            term
            for held in simulated.snapshot.placed.terms.held()
            if held.kind is TermKind.REQUIRED_ANTI_AFFINITY
            for term in held.times
        }
        found = []
        concerned: dict[PodTemplate, bool] = {}
        pods = self._filter.among(scene.pods())
        for pod in pods:
            if pod.template not in concerned:
                concerned[pod.template] = _concerned(pod, terms)
            if not concerned[pod.template]:
                continue
            another = await simulated.another_allowed_by(AFFINITY, pod)
            if another is None or another[simulated.snapshot.row_of[pod.node_name]]:
                # Where one more could stand this one may: taking a pod out breaks no anti-affinity.
                continue
            with simulated.trial():
                simulated.take_out(pod)
                _, why = await simulated.asked(AFFINITY, pod)
            if ANTI_AFFINITY in why:
                found.append(EvictionCandidate((pod,), f"{pod.node_name}: {why}"))
        return proposed(found, pods, "is kept off its node by required anti-affinity, its own or another's")

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better where the plugin lets it be, while it does not where the pod is."""
        allowed, why = await scene.simulated.asked(AFFINITY, pod)
        if ANTI_AFFINITY not in why:
            return lambda _: Judgement(False, f"{pod.node_name} would do by now")
        rows = scene.simulated.snapshot.row_of
        return lambda node: Judgement(bool(allowed[rows[node]]), f"on {node} anti-affinity is kept")


def _concerned(pod: Pod, terms: set[HeldTerm]) -> bool:
    """Whether a term is the pod's own, or may match it; the plugin knows about namespaces' labels."""
    if any(held.kind is TermKind.REQUIRED_ANTI_AFFINITY for held in PodInfo(pod).held):
        return True
    return any(held.term.selector.matches(pod.labels) for held in terms)


class TopologySpread:
    """RemovePodsViolatingTopologySpreadConstraint: chosen constraints, all of them taken as hard ones."""

    def __init__(self, args: TopologySpreadArgs) -> None:
        self._filter = Filter(args.namespaces, args.label_selector)
        self._actions = frozenset(args.constraints)
        self._strict_of: dict[PodTemplate, PodTemplate | None] = {}

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods that would make their domain too large if they came now."""
        simulated = scene.simulated
        found = []
        pods = self._filter.among(scene.pods())
        for pod in pods:
            strict = self._strict(pod)
            if strict is None:
                continue
            another = await simulated.another_allowed_by(SPREAD, strict)
            if another is None or another[simulated.snapshot.row_of[pod.node_name]]:
                # Where one more would keep the skew, so does the same number of pods.
                continue
            with simulated.trial():
                simulated.take_out(pod)
                _, why = await simulated.asked(SPREAD, strict)
            if why:
                found.append(EvictionCandidate((pod,), f"{pod.node_name}: {why}"))
        kinds = " or ".join(sorted(self._actions))
        return proposed(found, pods, f"breaks a constraint of {kinds} where it is")

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better where the constraints are met, while they are not where the pod is."""
        strict = self._strict(pod)
        assert strict is not None, "a candidate has constraints"
        allowed, why = await scene.simulated.asked(SPREAD, strict)
        if not why:
            return lambda _: Judgement(False, f"{pod.node_name} would do by now")
        rows = scene.simulated.snapshot.row_of

        def judge(node: str) -> Judgement:
            better = bool(allowed[rows[node]])
            return Judgement(
                better, f"on {node} its spread constraints are {'met' if better else 'not met either'}"
            )

        return judge

    def _strict(self, pod: Pod) -> Pod | None:
        """The pod, on its node, with the constraints that count; None where none does."""
        if pod.template not in self._strict_of:
            self._strict_of[pod.template] = self._made_strict(pod.template)
        strict = self._strict_of[pod.template]
        return None if strict is None else msgspec.structs.replace(pod, template=strict)

    def _made_strict(self, template: PodTemplate) -> PodTemplate | None:
        own = template.spec.topology_spread_constraints
        if not own:
            # The profile's default constraints may be hard ones.
            return template if HARD in self._actions else None
        chosen = tuple(
            msgspec.structs.replace(each, when_unsatisfiable=HARD)
            for each in own
            if each.when_unsatisfiable in self._actions
        )
        if not chosen:
            return None
        spec = msgspec.structs.replace(template.spec, topology_spread_constraints=chosen)
        return interned(template.namespace, template.labels, template.owner_references, spec)
