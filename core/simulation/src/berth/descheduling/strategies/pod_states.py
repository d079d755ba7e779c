"""Pods that are to be made anew for what became of them: restarts, age, failure."""

from berth.config.descheduling.policy import (
    ConditionFilter,
    FailedPodsArgs,
    PodLifeTimeArgs,
    TooManyRestartsArgs,
)
from berth.descheduling.cluster import FAILED
from berth.descheduling.pod_facts import PodConditionFacts, PodFacts, exit_codes, reasons, seconds_since
from berth.descheduling.strategies.strategy import (
    EvictionCandidate,
    EvictionProposal,
    Filter,
    Judge,
    Judgement,
    Scene,
    proposed,
)
from berth.framework.pluralize import pluralize
from berth.objects.pods.pod import Pod
from berth.simulation.reading.inputs import FINISHED


class TooManyRestarts:
    """RemovePodsHavingTooManyRestarts: another node may do better by them."""

    def __init__(self, args: TooManyRestartsArgs) -> None:
        self._args = args
        self._filter = Filter(args.namespaces, args.label_selector)

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods restarted too often, those most often restarted first."""
        counted = []
        pods = self._filter.among(scene.pods())
        for pod in pods:
            facts = scene.facts_of(pod)
            count = facts.restarts(init=self._args.including_init_containers)
            if count >= self._args.pod_restart_threshold and self._in_state(facts):
                counted.append((count, EvictionCandidate((pod,), f"{count} restarts on {pod.node_name}")))
        found = [candidate for _, candidate in sorted(counted, key=lambda each: -each[0])]
        states = (
            f" and is in one of states {', '.join(sorted(self._args.states))}" if self._args.states else ""
        )
        least = self._args.pod_restart_threshold
        return proposed(found, pods, f"was restarted {pluralize(least, 'time')} or more{states}")

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better on any node, which is another."""
        del scene, pod
        return lambda node: Judgement(True, f"a fresh start on {node}")

    def _in_state(self, facts: PodFacts) -> bool:
        states = self._args.states
        if not states or facts.phase in states:
            return True
        statuses = facts.statuses(init=self._args.including_init_containers)
        return any(
            each.state.waiting is not None and each.state.waiting.reason in states for each in statuses
        )


class LifeTime:
    """PodLifeTime: what is too old is made anew, on the same node where that is the best."""

    def __init__(self, args: PodLifeTimeArgs) -> None:
        self._args = args
        self._filter = Filter(args.namespaces, args.label_selector)

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods that all criteria apply to, the oldest first."""
        found = []
        pods = self._filter.among([*scene.pods(), *scene.ended_pods()])
        for pod in pods:
            age = _age(pod, scene)
            if self._applies(scene, pod, age):
                runs = pod.status.phase not in FINISHED
                text = f"it is {age:.0f} s old"
                found.append((age, EvictionCandidate((pod,), text, needs_place=runs, may_return=True)))
        ordered = [candidate for _, candidate in sorted(found, key=lambda each: -each[0])]
        most = self._args.max_pod_life_time_seconds
        older = "" if most is None else f"is older than {most} s and "
        return proposed(ordered, pods, f"{older}meets all criteria that the arguments set")

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Any node will do: the pod is made anew."""
        del scene, pod
        return lambda node: Judgement(
            True, f"made anew on {node}" if node else "what has ended is taken away"
        )

    def _applies(self, scene: Scene, pod: Pod, age: float) -> bool:
        args, facts = self._args, scene.facts_of(pod)
        most = args.max_pod_life_time_seconds
        codes = exit_codes(facts.statuses(init=args.including_init_containers))
        return (
            pod.uid not in scene.stays
            and (most is None or int(age) > most)
            and self._is_of_owners(pod)
            and (not args.states or bool(args.states & self._states(facts)))
            and (not args.exit_codes or bool(args.exit_codes & codes))
            and (not args.conditions or self._has_condition(facts, scene))
        )

    def _is_of_owners(self, pod: Pod) -> bool:
        chosen = self._args.owner_kinds
        kinds = {owner.kind for owner in pod.metadata.owner_references}
        return bool(kinds & chosen.include) if chosen.include else not kinds & chosen.exclude

    def _has_condition(self, facts: PodFacts, scene: Scene) -> bool:
        return any(_has(each, wanted, scene) for wanted in self._args.conditions for each in facts.conditions)

    def _states(self, facts: PodFacts) -> set[str]:
        args = self._args
        statuses = facts.statuses(
            init=args.including_init_containers, ephemeral=args.including_ephemeral_containers
        )
        return {facts.phase, facts.reason, *reasons(statuses)}


def _age(pod: Pod, scene: Scene) -> float:
    created = pod.metadata.creation_timestamp
    return 0.0 if created is None else seconds_since(created, scene.now)


def _has(condition: PodConditionFacts, wanted: ConditionFilter, scene: Scene) -> bool:
    pairs = (
        (wanted.type, condition.type),
        (wanted.status, condition.status),
        (wanted.reason, condition.reason),
    )
    if any(asked and asked != found for asked, found in pairs):
        return False
    least = wanted.min_time_since_last_transition_seconds
    if least is None:
        return True
    since = condition.last_transition_time
    return since is not None and seconds_since(since, scene.now) >= least


class FailedPods:
    """RemoveFailedPods: they hold nothing any more, and nothing has to be found for them."""

    def __init__(self, args: FailedPodsArgs) -> None:
        self._args = args
        self._filter = Filter(args.namespaces, args.label_selector)

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Failed pods of these reasons and exit codes that are old enough."""
        failed = self._filter.among([pod for pod in scene.ended_pods() if pod.status.phase == FAILED])
        found = [
            EvictionCandidate(
                (pod,), f"it failed: {scene.facts_of(pod).reason or 'no reason is given'}", needs_place=False
            )
            for pod in failed
            if self._applies(scene, pod)
        ]
        least = self._args.min_pod_lifetime_seconds
        criteria = f"meets all criteria that the arguments set (minPodLifetimeSeconds {least})"
        return proposed(found, failed, f"that failed {criteria}")

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """A pod that failed is better gone."""
        del scene, pod
        return lambda _: Judgement(True, "what failed is taken away")

    def _applies(self, scene: Scene, pod: Pod) -> bool:
        args, facts = self._args, scene.facts_of(pod)
        if _age(pod, scene) < args.min_pod_lifetime_seconds:
            return False
        if any(owner.kind in args.exclude_owner_kinds for owner in pod.metadata.owner_references):
            return False
        statuses = list(facts.statuses(init=args.including_init_containers))
        found = {*reasons(iter(statuses)), facts.reason} - {""}
        if args.reasons and not args.reasons & found:
            return False
        return not args.exit_codes or bool(args.exit_codes & exit_codes(iter(statuses)))
