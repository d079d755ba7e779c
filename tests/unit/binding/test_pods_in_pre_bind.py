# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""A binding can be stopped until PreBind is over, and not after that."""

import asyncio

import pytest

from berth.binding.pods_in_pre_bind import PodInPreBind
from berth.framework.interface import PreBindPlugin
from berth.framework.status import SUCCESS, failed
from berth.scheduler.loop.background import AsyncioBackground
from berth.testing.builders import make_node
from tests.fakes import Binds, Named, Steps, framework, make_core, pending

N1 = make_node("n1")
STOP = "preempted by DefaultPreemption"


class Slow(Named, PreBindPlugin):
    """Works until asked to end, and notes it when it is stopped."""

    def __init__(self, status=SUCCESS):
        super().__init__("Slow")
        self.status, self.begun, self.go_on = status, asyncio.Event(), asyncio.Event()

    async def pre_bind(self, state, pod, node_name):
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.note("stopped")
            raise
        return self.status


async def binding(plugin, meanwhile):
    """One pod bound with this PreBind plugin; `meanwhile` happens once it is at work."""
    binds = Binds()
    w = make_core(framework(pre_bind=[plugin], bind=[binds]), N1)
    w.add_pod(pending())
    async with asyncio.TaskGroup() as tasks:
        real = AsyncioBackground(tasks)
        for name in ("spawn", "unless", "all_of", "outcome"):
            setattr(w.background, name, getattr(real, name))
        await w.schedule_one.schedule(w.queue.pop())
        await plugin.begun.wait()
        meanwhile(w.schedule_one.commit.binding.pods_in_pre_bind, pending().uid)
    return w, binds


def test_once_cancelled_it_is_never_prebound():
    pod = PodInPreBind(Steps(None))

    assert (True, True, False) == (pod.cancel(STOP), pod.cancel("again"), pod.mark_prebound())
    assert STOP == pod.message


def test_once_prebound_it_is_never_cancelled():
    pod = PodInPreBind(Steps(None))

    assert (True, False) == (pod.mark_prebound(), pod.cancel(STOP))


async def test_a_cancelled_pod_is_not_bound_and_goes_back_as_an_error():
    plugin = Slow()
    w, binds = await binding(plugin, lambda pods, uid: pods.get(uid).cancel(STOP))

    assert (["Slow.stopped"], []) == (plugin.calls, binds.calls)
    assert [("SchedulerError", STOP)] == [(c.reason, c.message) for c in w.conditions]
    assert 0 == w.cache.pod_count()


@pytest.mark.parametrize("status", [SUCCESS, failed("no disk")], ids=["bound", "failed"])
async def test_no_pod_is_in_pre_bind_once_the_binding_cycle_is_over(status):
    plugin = Slow(status)
    w, binds = await binding(plugin, lambda *_: plugin.go_on.set())

    assert w.schedule_one.commit.binding.pods_in_pre_bind.get(pending().uid) is None
    assert status.ok == bool(binds.calls)


async def test_a_pod_without_pre_bind_work_cannot_be_stopped():
    w = make_core(framework(bind=[Binds()]), N1)
    w.add_pod(pending())
    await w.turn()

    assert w.schedule_one.commit.binding.pods_in_pre_bind.get(pending().uid) is None
