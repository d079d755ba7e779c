"""What explains a scheduler's pods, groups, nodes, profiles and queue, made of the scheduler's parts.

Requests come from berth.aggregated_api.routing, which explain_access.py puts in front.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from berth.aggregated_api.kinds import NODE, POD, POD_GROUP, PROFILE
from berth.aggregated_api.routing import ExplainRequest, Explanation
from berth.config.releases.release import shown
from berth.config.shards import Shard
from berth.explain.attempt_log import AttemptLog
from berth.explain.explainer import Explainer, ExplainOptions
from berth.explain.loop_turn import LoopTurn
from berth.explain.overviews import Overviews
from berth.explain.pod_states import PodStates
from berth.explain.schema import NodeExplanation
from berth.explain.several_answers import merged
from berth.explain.trying import Trying
from berth.objects.pods.pod import Pod
from berth.preemption.evaluator import Evaluator
from berth.scheduler.leading.leaderships import Leaderships
from berth.scheduler.loop.fair_turn import FairTurn, UsersTurn
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.scheduler.scheduler import Scheduler


def new_explainer(
    scheduler: Scheduler,
    attempts: AttemptLog,
    turn: LoopTurn,
    watched_pods: Callable[[], Iterable[Pod]],
) -> Explainer:
    """An explainer of that scheduler's pods; `watched_pods` are all that the watch brought."""

    def watched(namespace: str, name: str) -> Pod | None:
        found = (pod for pod in watched_pods() if pod.name == name and pod.namespace == namespace)
        return next(found, None)

    def evaluator(profile: str) -> Evaluator | None:
        handle = scheduler.handles.get(profile)
        preemption = None if handle is None else handle.preemption
        return preemption if isinstance(preemption, Evaluator) else None

    states = PodStates(
        queue=scheduler.queue,
        cache=scheduler.cache,
        waiting_pods=scheduler.waiting_pods,
        pods_in_pre_bind=scheduler.pods_in_pre_bind,
        clock=scheduler.clock,
        frameworks=scheduler.profiles.frameworks,
        queue_profiles=scheduler.profiles.queue_profiles,
    )
    return Explainer(
        states=states,
        trying=Trying(scheduler.queue.nominator),
        cache=scheduler.cache,
        snapshot=scheduler.snapshot,
        unassigned=scheduler.unassigned,
        watched=watched,
        frameworks=scheduler.profiles.frameworks,
        evaluators=evaluator,
        budgets=scheduler.budgets,
        attempts=attempts,
        listers=scheduler.listers,
        turn=turn,
        release=shown(scheduler.release),
    )


def new_overviews(
    scheduler: Scheduler, explainer: Explainer, watched_pods: Callable[[], Iterable[Pod]]
) -> Overviews:
    """The wider views of that scheduler, beside its explainer of pods."""
    return Overviews(
        explainer=explainer,
        queue=scheduler.queue,
        attempts=explainer.attempts,
        trees=scheduler.listers.trees,
        group_states=scheduler.pod_groups,
        watched_pods=watched_pods,
    )


class ExplainingHere(msgspec.Struct, frozen=True, kw_only=True):
    """This scheduler, as routing asks for it; its loop answers."""

    identity: str
    leaderships: Leaderships
    shards: tuple[Shard, ...]
    turns: LoopTurns
    turn: FairTurn
    overviews: Callable[[UsersTurn], Overviews]
    """What answers one question, by the turn that it has."""

    def serves(self, profile: str) -> bool:
        """Whether one of its profiles has that name."""
        return any(profile in shard.profiles for shard in self.shards)

    def profiles(self) -> tuple[str, ...]:
        """Names of its profiles."""
        return tuple(profile for shard in self.shards for profile in shard.profiles)

    def leads(self, profile: str) -> bool:
        """Whether this process schedules the profile's pods."""
        return profile in self._led()

    def leads_any(self) -> bool:
        """Whether this process schedules anything."""
        return self.leaderships.leads_any()

    def _led(self) -> frozenset[str]:
        led = (shard for shard in self.shards if self.leaderships.leads(shard.name))
        return frozenset(profile for shard in led for profile in shard.profiles)

    async def profile_of_group(self, namespace: str, name: str) -> str:
        """The profile of the group's pods; "" where no pod of it is known."""
        return await self.turns.ask(lambda: self._profile_of_group(namespace, name))

    async def _profile_of_group(self, namespace: str, name: str) -> str:
        with self.turn.question("") as turn:
            return await self.overviews(turn).profile_of_group(namespace, name)

    async def explain(self, asked: ExplainRequest) -> Explanation:
        """What is known here. Raises: LookupError, TooManyQuestionsError."""
        return await self.turns.ask(lambda: self._answer(asked))

    async def _answer(self, asked: ExplainRequest) -> msgspec.Struct:
        with self.turn.question(asked.user) as turn:
            overviews = self.overviews(turn)
            match asked.kind.name:
                case POD.name:
                    wanted = ExplainOptions(**explain_options(asked.query))
                    return await overviews.explainer.explain(asked.namespace, asked.name, wanted)
                case POD_GROUP.name:
                    return await overviews.pod_group(asked.namespace, asked.name)
                case NODE.name:
                    return await overviews.node(asked.name, self._led())
                case PROFILE.name:
                    return await overviews.profile(asked.name)
                case _:
                    return await overviews.queued(asked.name, self._led())


OPTIONS = {"allReasons": "all_reasons", "proposals": "proposals", "wide": "wide"}
"""What a request's query may say, and what it is called in Wanted."""


def explain_options(query: Mapping[str, str]) -> dict[str, bool]:
    """What a request's query says an explanation of a pod is to have, by Wanted's names."""
    return {name: query[key] == "true" for key, name in OPTIONS.items() if key in query}


def merged_nodes(answers: Sequence[Explanation], failures: Sequence[str]) -> NodeExplanation:
    """Several schedulers' answers about one node as one, those of others as they came over the network."""
    return merged([msgspec.convert(msgspec.to_builtins(one), NodeExplanation) for one in answers], failures)
