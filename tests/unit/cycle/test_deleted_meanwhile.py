"""A pod that is deleted, or bound by another scheduler, while it is on its way."""

import pytest

from berth.event_handlers.pods import PodHandler
from berth.framework.status import Code, Status
from berth.testing.builders import make_node
from tests.fakes import Binds, Later, Permits, Reserves, framework, make_core, pending

N1, N2 = make_node("n1"), make_node("n2")
WAIT = Status(Code.WAIT)


class Hangs(Binds):
    """A binding whose answer comes when the test says so."""

    def __init__(self):
        super().__init__()
        self.answer = Later()

    async def bind(self, state, pod, node_name):
        await super().bind(state, pod, node_name)
        answer = await self.answer
        if isinstance(answer, Exception):
            raise answer
        return answer


async def on_its_way(*nodes, **points):
    """A pod whose binding cycle has begun, and the handler that hears what becomes of it."""
    w = make_core(framework(**points), *(nodes or (N1,)))
    handler = PodHandler(
        w.queue,
        w.cache,
        unassigned=w.unassigned,
        profiles=w.frameworks,
        waiting_pods=w.waiting_pods,
        clock=w.clock,
    )
    pod = pending()
    handler.on_add(pod)
    await w.turn()
    assert w.cache.is_assumed(pod.uid)
    return w, handler, pod


def nothing_is_left(w):
    return (w.cache.pod_count(), sum(w.queue.sizes()), list(w.queue.in_flight()), len(w.waiting_pods)) == (
        0,
        0,
        [],
        0,
    )


async def test_deleted_while_it_is_being_bound():
    """Its room is free at once; the answer that comes later changes nothing."""
    binder, calls = Hangs(), []
    w, handler, pod = await on_its_way(bind=[binder], reserve=[Reserves("R", calls=calls)])
    handler.on_delete(pod)
    assert 0 == w.cache.node_info("n1").requested.get("cpu", 0)
    assert not w.cache.is_assumed(pod.uid)

    binder.answer.set(LookupError("no such pod"))
    w.background.run()
    assert nothing_is_left(w)
    assert ["R.reserve", "R.unreserve"] == calls


async def test_deleted_while_it_waits_for_permission():
    w, handler, pod = await on_its_way(bind=[Binds()], permit=[Permits("P", WAIT, 60)])
    handler.on_delete(pod)
    w.background.run()

    assert nothing_is_left(w)
    assert [] == w.schedule_one.frameworks["default-scheduler"].plugins.bind[0].calls


@pytest.mark.parametrize("bound_to", ["n1", "n2"])
async def test_the_watch_tells_of_the_binding_before_the_answer_does(bound_to):
    """Wherever the API server has the pod, there it counts, and only there."""
    binder = Hangs()
    w, handler, pod = await on_its_way(N1, N2, bind=[binder])
    chosen = w.cache.get_pod(pod.uid).node_name
    handler.on_update(pod, pod.placed_on(bound_to))
    binder.answer.set(Status() if bound_to == chosen else RuntimeError("already assigned"))
    w.background.run()

    assert [pod.uid] == list(w.cache.node_info(bound_to).pods)
    assert 1 == w.cache.pod_count()
    assert 0 == sum(w.queue.sizes())
    assert [] == list(w.queue.in_flight())


async def test_an_update_of_an_assumed_pod_does_not_queue_it_again():
    binder = Hangs()
    w, handler, pod = await on_its_way(bind=[binder])
    handler.on_update(pod, pending(labels={"new": "yes"}))

    assert 0 == sum(w.queue.sizes())
    binder.answer.set(Status())
    w.background.run()
    assert w.cache.is_assumed(pod.uid)
