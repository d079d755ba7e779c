# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""From assumed to bound, or back to the queue."""

import pytest

from berth.binding.binding_cycle import PRE_BIND_MOMENT_SECONDS
from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.interface import DirectBindPlugin
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed, unschedulable
from berth.testing.builders import make_node
from tests.failures.reporting import reports
from tests.fakes import (
    PROFILE,
    Binds,
    Later,
    Named,
    Permits,
    PostBinds,
    PreBinds,
    Reserves,
    framework,
    make_core,
    pending,
)

N1 = make_node("n1")
WAIT = Status(Code.WAIT)
POD_DELETED = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE).label


async def run(*, meanwhile=None, **points):
    """One pod through the whole way; `moves` are the move passes with what the queue held then."""
    w = make_core(framework(**{"bind": [Binds()], **points}), N1)
    w.moves = []
    move_all = w.queue.move_all

    def noting(event, old, new, predicate=None):
        w.moves.append((event.label, w.waits() is not None, predicate is None or predicate(pending())))
        move_all(event, old, new, predicate)

    w.queue.move_all = noting
    w.add_pod(pending())
    info = w.queue.pop()
    await w.schedule_one.schedule(info)
    if meanwhile:
        meanwhile(w)
    w.background.run()
    return w


def undone(w):
    """Nothing is held for the pod any more, and it waits again."""
    return (w.cache.pod_count(), w.waits() is not None, list(w.queue.in_flight())) == (0, True, [])


async def test_the_whole_way():
    calls = []
    w = await run(
        reserve=[Reserves("R", calls=calls)],
        permit=[Permits("P", calls=calls)],
        pre_bind=[PreBinds("B", calls=calls)],
        bind=[Binds("Binds", calls=calls)],
        post_bind=[PostBinds("O", calls=calls)],
    )

    assert [
        "R.reserve",
        "P.permit",
        "B.pre_bind",
        "Binds.bind p0 to n1",
        "O.post_bind",
    ] == calls
    assert w.cache.is_assumed("default-p0")
    assert [] == w.moves


@pytest.mark.parametrize(
    ("points", "written"),
    [
        ({"pre_bind": [PreBinds("B")]}, ["n1"]),
        ({"pre_bind": [PreBinds("B", flight=SKIP)]}, []),
        ({}, []),
    ],
    ids=["work", "no work", "no plugins"],
)
async def test_the_node_is_announced_where_pre_bind_has_work(points, written):
    assert written == (await run(**points)).nominations


async def test_the_node_is_announced_while_the_pod_waits():
    w = await run(permit=[Permits("P", WAIT, 10)])

    assert ["n1"] == w.nominations
    assert 1 == len(w.waiting_pods)


@reports("nomination-not-written", log="`nomination not written`, with the cause; the binding goes on")
async def test_an_announcement_that_fails_stops_nothing(caplog):
    def cut(w):
        w.writer.failure = ConnectionError("cut")

    w = await run(pre_bind=[PreBinds("B")], meanwhile=cut)

    assert w.cache.is_assumed("default-p0")
    assert "nomination not written" in caplog.text


async def test_the_pod_flies_until_permit_and_no_longer():
    class Looks(PreBinds):
        async def pre_bind(self, state, pod, node_name):
            seen.append(list(w_holder[0].queue.in_flight()))
            return await super().pre_bind(state, pod, node_name)

    seen, w_holder = [], []
    await run(pre_bind=[Looks("B")], meanwhile=w_holder.append)

    assert [[]] == seen


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"pre_bind": [PreBinds("B", failed("boom"))]}, 'running PreBind plugin "B": boom'),
        ({"pre_bind": [PreBinds("B", SKIP)]}, 'running PreBind plugin "B": '),
        ({"pre_bind": [PreBinds("B", flight=ValueError("boom"))]}, 'running PreBindPreFlight "B": boom'),
        ({"bind": [Binds("B", ConnectionError("cut"))]}, 'running Bind plugin "B": cut'),
    ],
    ids=["pre-bind", "pre-bind skips", "pre-flight", "bind"],
)
async def test_an_error_undoes_and_wakes_everybody_first(points, message):
    """The pod that failed, too, may gain from what it held: the pass comes before it is put back."""
    calls = []
    w = await run(reserve=[Reserves("R1", calls=calls), Reserves("R2", calls=calls)], **points)

    assert undone(w)
    assert ["R2.unreserve", "R1.unreserve"] == calls[2:]
    assert [(POD_DELETED, False, True)] == w.moves
    assert ("SchedulerError", message) == (w.conditions[-1].reason, w.conditions[-1].message)
    assert (set(), 1) == (w.waits().rejectors, w.waits().consecutive_errors_count)
    assert [("FailedScheduling", message)] == w.notes


@pytest.mark.parametrize(
    "points",
    [{"pre_bind": [PreBinds("B", unschedulable("no"))]}, {"bind": [Binds("B", unschedulable("no"))]}],
    ids=["pre-bind", "bind"],
)
async def test_a_rejection_undoes_and_wakes_the_others_last(points):
    """Unschedulable for users, an error for the queue: no plugin is a rejector."""
    w = await run(**points)

    assert undone(w)
    assert [(POD_DELETED, True, False)] == w.moves
    assert ("Unschedulable", "no") == (w.conditions[-1].reason, w.conditions[-1].message)
    assert (set(), 1) == (w.waits().rejectors, w.waits().consecutive_errors_count)


@reports("nothing-binds", log="`pod goes back without a reason`")
async def test_a_pod_that_no_plugin_binds_goes_back_without_an_event(caplog):
    w = await run(bind=[Binds("B", SKIP)])

    assert undone(w)
    assert ([], []) == (w.notes, w.conditions)
    assert ["pod goes back without a reason pod=default/p0 code=Skip"] == caplog.messages


async def test_a_group_that_fails_ends_pre_bind():
    calls = []
    w = await run(
        pre_bind=[
            PreBinds("A", calls=calls, parallel=True),
            PreBinds("B", failed("b"), calls=calls, parallel=True),
            PreBinds("C", calls=calls),
        ]
    )

    assert ["A.pre_bind", "B.pre_bind"] == calls
    assert 'running PreBind plugin "B": b' == w.conditions[-1].message


@reports("not-forgotten", log="`assumed pod not forgotten`, with the cause; the pod stays on its node")
async def test_a_binding_that_was_observed_after_all_is_not_undone_in_the_cache(caplog):
    """The watch may know better than the answer: the pod stays on its node and no pod is retried."""

    class CutAfterwards(Binds):
        async def bind(self, state, pod, node_name):
            w_holder[0].cache.add_pod(pod)
            w_holder[0].unassigned.remove(pod)
            raise ConnectionError("cut")

    w_holder = []
    w = await run(bind=[CutAfterwards()], meanwhile=w_holder.append)

    assert 1 == w.cache.pod_count()
    assert [] == w.moves
    assert w.waits() is None
    assert "assumed pod not forgotten" in caplog.text


class UnthinkableError(Exception):
    """Something that no contract foresees."""


@reports("attempt-breaks", log="`binding cycle broke off`, with a traceback")
async def test_whatever_breaks_in_a_binding_cycle_leaves_no_pod_behind(caplog):
    def break_it(w):
        def broken(state):
            raise UnthinkableError(state)

        w.schedule_one.frameworks[PROFILE].pre_bind_groups = broken

    w = await run(pre_bind=[PreBinds("B")], meanwhile=break_it)

    assert undone(w)
    assert "SchedulerError" == w.conditions[-1].reason
    assert "binding cycle broke off pod=default/p0" in caplog.text


@reports("post-bind-fails", log="`pod is bound, but not all was done`, with plugin and cause")
async def test_a_post_bind_that_fails_is_logged(caplog):
    """The pod is bound all the same, and all other plugins are notified."""

    class Breaks(PostBinds):
        def post_bind(self, state, pod, node_name):
            raise ValueError("no disk")

    calls = []
    await run(post_bind=[Breaks("O"), PostBinds("P", calls=calls)])

    line = 'pod is bound, but not all was done pod=default/p0 err=running PostBind plugin "O": no disk'
    assert ["P.post_bind"] == calls
    assert [line] == caplog.messages


async def test_post_bind_may_wake_pods():
    class Wakes(PostBinds):
        def post_bind(self, state, pod, node_name):
            state.pods_to_activate[other.key] = other

    other = pending("other")
    activated = []

    def watch(w):
        w.queue.activate = activated.extend

    await run(post_bind=[Wakes("O")], meanwhile=watch)

    assert [other] == activated


# Without a task.


class Direct(Named, DirectBindPlugin):
    """Binds every pod, and is done when the test says so."""

    def __init__(self):
        super().__init__("Direct")
        self.done = []

    def begin_bind(self, state, pod, node_name, done):
        self.note(f"bind {pod.name} to {node_name}")
        self.done.append(done)

    async def bind(self, state, pod, node_name):
        self.note(f"bind {pod.name} to {node_name} in a task")
        return SUCCESS


async def begun(**points):
    """A pod on its way with a plugin that binds without a task, before anything in the background ran."""
    binder = Direct()
    w = make_core(framework(bind=[binder], **points), N1)
    w.add_pod(pending())
    await w.schedule_one.schedule(w.queue.pop())
    return w, binder


async def test_a_plain_binding_needs_no_task():
    w, binder = await begun()
    before = (
        list(w.background.names),
        list(w.queue.in_flight()),
        w.schedule_one.commit.binding.at_work["binding"],
    )
    [done] = binder.done
    done(SUCCESS)

    assert ([], [], 1) == before
    assert (["Direct.bind p0 to n1"], ["Scheduled"]) == (binder.calls, [reason for reason, _ in w.notes])
    assert (["scheduled"], 0) == (
        [r.result for r in w.records],
        w.schedule_one.commit.binding.at_work["binding"],
    )
    assert [] == w.background.names


async def test_a_binding_that_fails_is_undone_in_a_task():
    w, binder = await begun()
    binder.done[0](failed("no"))
    w.background.run()

    assert undone(w)
    assert 'running Bind plugin "Direct": no' == w.conditions[-1].message
    assert (["error"], 0) == ([r.result for r in w.records], w.schedule_one.commit.binding.at_work["binding"])


async def test_post_bind_plugins_are_called_in_a_task():
    calls = []
    w, binder = await begun(post_bind=[PostBinds("O", calls=calls)])
    binder.done[0](SUCCESS)
    w.background.run()

    assert (["O.post_bind"], ["scheduled"]) == (calls, [r.result for r in w.records])


async def test_a_post_bind_plugin_that_wants_nothing_of_an_attempt_spares_the_task():
    class Uninterested(PostBinds):
        def wants_post_bind(self, state):
            return False

    calls = []
    w, binder = await begun(post_bind=[Uninterested("O", calls=calls)])
    binder.done[0](SUCCESS)

    assert ([], ["scheduled"]) == (calls, [r.result for r in w.records])


@pytest.mark.parametrize(
    "points",
    [{"pre_bind": [PreBinds("B")]}, {"permit": [Permits("P", WAIT, 10)]}],
    ids=["PreBind", "Permit"],
)
async def test_a_binding_that_waits_first_has_a_task(points):
    w, binder = await begun(**points)
    w.background.run()
    for waiting in w.waiting_pods:
        waiting.allow("P")
    w.background.run()

    assert ["Direct.bind p0 to n1 in a task"] == binder.calls
    assert ["scheduled"] == [r.result for r in w.records]


async def test_a_plugin_that_cannot_begin_fails_the_attempt_alone():
    class Broken(Direct):
        def begin_bind(self, state, pod, node_name, done):
            raise ConnectionError("cut")

    w = make_core(framework(bind=[Broken()]), N1)
    w.add_pod(pending())
    await w.turn()

    assert undone(w)
    assert 'running Bind plugin "Direct": cut' == w.conditions[-1].message


# Waiting: core 5.5.


async def waiting(*plugins):
    w = await run(permit=list(plugins))
    return w, w.waiting_pods.get("default-p0")


async def test_a_waiting_pod_is_bound_once_everybody_allows():
    w, pod = await waiting(Permits("A", WAIT, 10), Permits("B", WAIT, 20))
    pod.allow("A")
    w.background.run()
    assert ["B"] == pod.pending_plugins()
    assert ["default-p0"] == list(w.queue.in_flight())

    pod.allow("B")
    w.background.run()
    assert ["WaitingAtPermit", "Scheduled"] == [reason for reason, _ in w.notes]
    assert 0 == len(w.waiting_pods)


@reports(
    "permit-waits",
    event="`WaitingAtPermit` of the pod, with plugins and what for",
)
async def test_a_pod_that_waits_at_permit_says_for_whom_and_what_for():
    gang = Status(Code.WAIT, ("the rest of the gang",))
    w, pod = await waiting(Permits("A", gang, 10), Permits("B", WAIT, 20))

    note = "Node n1 was chosen; waiting at Permit for A (the rest of the gang), B (no reason given)"
    assert [("WaitingAtPermit", note)] == w.notes
    assert {"A": 1010.0, "B": 1020.0} == pod.until


@reports(
    "pre-bind-waits",
    condition="`PodScheduled=False`: `WaitingInPreBind`, with node and plugins, until it is bound",
    event="`WaitingInPreBind` of the pod, after two seconds",
)
async def test_a_pod_that_is_long_in_pre_bind_says_for_whom():
    """One event and condition, written before the binding, and none for plugins that need but a moment."""

    class Slow(PreBinds):
        async def pre_bind(self, state, pod, node_name):
            await arrived
            return await super().pre_bind(state, pod, node_name)

    arrived = Later()
    w = await run(pre_bind=[PreBinds("Quick"), Slow("Slow")])
    assert [] == w.notes
    w.background.advance(PRE_BIND_MOMENT_SECONDS)

    assert [("WaitingInPreBind", "Node n1 was chosen; waiting in PreBind for Slow")] == w.notes
    arrived.set(None)
    w.background.run()
    assert [] == w.writer.bindings
    w.background.run()
    assert ["WaitingInPreBind", "Scheduled"] == [reason for reason, _ in w.notes]
    assert not w.background.timers
    ((_, (condition, nominated)),) = [patch for patch in w.writer.patches if patch[1][0] is not None]
    assert ("PodScheduled", "False", "WaitingInPreBind", None) == (
        condition.type,
        condition.status,
        condition.reason,
        nominated,
    )
    assert "Node n1 was chosen; waiting in PreBind for Slow" == condition.message


async def test_a_rejected_waiting_pod_goes_back_with_its_rejector():
    w, pod = await waiting(Permits("A", WAIT, 10), Permits("B", WAIT, 20))
    pod.allow("A")
    assert pod.reject("B", "not now")
    w.background.run()

    assert undone(w)
    assert {"B"} == w.waits().rejectors
    assert "0/1 nodes are available: 1 not now." == w.conditions[-1].message
    assert [(POD_DELETED, True, False)] == w.moves


async def test_time_runs_out_at_one_plugin():
    w, _ = await waiting(Permits("A", WAIT, 10), Permits("B", WAIT, 20))
    w.background.advance(9.9)
    w.background.run()
    assert 1 == len(w.waiting_pods)

    w.background.advance(0.1)
    w.background.run()
    assert {"A"} == w.waits().rejectors
    assert (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin A."
        == w.conditions[-1].message
    )


async def test_a_preempted_waiting_pod_is_an_error():
    w, pod = await waiting(Permits("A", WAIT, 10))
    assert pod.preempt("DefaultPreemption", "preempted")
    w.background.run()

    assert undone(w)
    assert ("SchedulerError", "waiting on permit for pod: preempted") == (
        w.conditions[-1].reason,
        w.conditions[-1].message,
    )
    assert (set(), 1) == (w.waits().rejectors, w.waits().consecutive_errors_count)


async def test_an_outcome_before_anybody_waits_for_it_is_kept():
    def allow(w):
        w.waiting_pods.get("default-p0").allow("A")

    w = await run(permit=[Permits("A", WAIT, 10)], meanwhile=allow)

    assert ["Scheduled"] == [reason for reason, _ in w.notes]


async def test_a_rejection_beats_a_wish_to_wait():
    w = await run(permit=[Permits("W1", WAIT, 10), Permits("W2", unschedulable("no"))])

    assert undone(w)
    assert (0, {"W2"}) == (len(w.waiting_pods), w.waits().rejectors)
    assert SUCCESS.code is not w.records[0].status.code
