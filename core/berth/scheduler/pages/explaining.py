"""The explanations of a scheduler process: its parts put together for them, and the pages that serve them.

/explain?namespace=&name=[&allReasons=true][&proposals=false][&wide=true]    a pod (endpoints.py)
/explain/podgroup?namespace=&name=   /explain/node?name=   /explain/profile?name=   /explain/queue
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
from aiohttp import web

from berth.aggregated_api.status import http_status
from berth.explain.attempt_log import AttemptLog
from berth.explain.explainer import Explainer
from berth.explain.overviews import Overviews
from berth.explain.pod_states import PodStates
from berth.explain.trying import Trying
from berth.objects.pod import Pod
from berth.preemption.evaluator import Evaluator
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.scheduler.scheduler import Scheduler

Answer = Coroutine[Any, Any, msgspec.Struct]
Page = Callable[[web.Request], Awaitable[web.Response]]


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

    states = PodStates(
        queue=scheduler.queue,
        cache=scheduler.cache,
        waiting_pods=scheduler.waiting_pods,
        pods_in_pre_bind=scheduler.pods_in_pre_bind,
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
        turn=turn,
    )


def overview_pages(scheduler: Scheduler, explainer: Explainer, turns: LoopTurns) -> Mapping[str, Page]:
    """The pages about groups, nodes, profiles and the queue, by path."""
    views = Overviews(
        explainer=explainer,
        queue=scheduler.queue,
        attempts=explainer.attempts,
        groups=scheduler.listers.pod_groups,
        group_states=scheduler.pod_groups,
    )

    def page(view: Callable[[str, str], Answer]) -> Page:
        async def answered(request: web.Request) -> web.Response:
            namespace, name = request.query.get("namespace", "default"), request.query.get("name", "")
            try:
                answer = await turns.ask(lambda: view(namespace, name))
            except LookupError as error:
                return http_status(404, "NotFound", str(error))
            return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

        return answered

    return {
        "/explain/podgroup": page(views.pod_group),
        "/explain/node": page(lambda _, name: views.node(name)),
        "/explain/profile": page(lambda _, name: views.profile(name)),
        "/explain/queue": page(lambda *_: views.queued()),
    }
