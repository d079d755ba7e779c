"""The explanations of a scheduler process: its parts put together for them, and the pages that serve them.

/explain?namespace=&name=[&allReasons=true][&proposals=false][&wide=true]    a pod
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager

from berth.explain.attempt_log import AttemptLog
from berth.explain.explainer import Explainer
from berth.explain.standing import Standings
from berth.explain.trying import Trying
from berth.objects.pod import Pod
from berth.preemption.evaluator import Evaluator
from berth.scheduler.scheduler import Scheduler


def new_explainer(
    scheduler: Scheduler,
    attempts: AttemptLog,
    turn: AbstractAsyncContextManager[object],
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

    standings = Standings(
        queue=scheduler.queue,
        cache=scheduler.cache,
        waiting_pods=scheduler.waiting_pods,
        pods_in_pre_bind=scheduler.pods_in_pre_bind,
        frameworks=scheduler.profiles.frameworks,
        queue_profiles=scheduler.profiles.queue_profiles,
    )
    return Explainer(
        standings=standings,
        trying=Trying(scheduler.queue.nominator),
        cache=scheduler.cache,
        snapshot=scheduler.snapshot,
        unassigned=scheduler.unassigned,
        watched=watched,
        frameworks=scheduler.profiles.frameworks,
        evaluators=evaluator,
        budgets=scheduler.budgets,
        attempts=attempts,
        turn=turn,
    )
