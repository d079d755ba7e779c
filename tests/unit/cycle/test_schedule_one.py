"""One scheduling cycle and what comes of it."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from berth.framework.interface import NominatingInfo, NominatingMode
from berth.framework.status import SUCCESS, Code, Status, failed, unresolvable, unschedulable
from berth.scheduler.loop.background import AsyncioBackground
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.testing.builders import make_node, make_pod
from tests.failures.reporting import reports
from tests.fakes import (
    Binds,
    Normalizes,
    Permits,
    PostFilters,
    PreFilters,
    Rejects,
    Reserves,
    Scores,
    framework,
    make_core,
    pending,
)

N1 = make_node("n1")
N2 = make_node("n2")
ON_N1 = NominatingInfo(NominatingMode.OVERRIDE, "n1")
CLEAR = NominatingInfo(NominatingMode.OVERRIDE, "")


OUT_OF_RANGE = (
    'applying score defaultWeights on Score plugins: plugin "S" returns an invalid score 101, '
    "it should in the range of [0, 100] after normalizing"
)


def binding(**points):
    return framework(**{"bind": [Binds()], **points})


async def test_a_pod_that_fits_is_bound():
    """Assumed with its node, bound, with an event; it waits nowhere and is in flight no more."""
    w = make_core(binding(), N1)
    w.add_pod(pending())
    await w.turn()

    assert ["Binds.bind p0 to n1"] == w.schedule_one.frameworks["default-scheduler"].plugins.bind[0].calls
    assert w.cache.is_assumed("default-p0")
    assert [("Scheduled", "Successfully assigned default/p0 to n1")] == w.notes
    assert [] == list(w.queue.in_flight())
    assert "scheduled" == w.records[0].result
    assert [] == w.writer.patches


async def test_the_best_node_is_chosen():
    w = make_core(binding(score=[(Scores("A", {"n1": 1}), 5), Scores("B", {"n2": 4})]), N1, N2)
    w.add_pod(pending())
    await w.turn()

    assert "n1" == w.cache.get_pod("default-p0").node_name
    assert (2, 2, 5) == (w.records[0].feasible_count, w.records[0].evaluated_count, w.records[0].score)


async def test_one_feasible_node_is_not_scored():
    profile = binding(filter=[Rejects("F", ["n2"])], score=[Scores("A", ValueError("never asked"))])
    w = make_core(profile, N1, N2)
    w.add_pod(pending())
    await w.turn()

    assert "n1" == w.cache.get_pod("default-p0").node_name


async def test_equal_nodes_share_the_pods():
    w = make_core(binding(score=[Scores("A")]), N1, N2)
    for i in range(20):
        w.add_pod(pending(f"p{i}"))
        await w.turn()

    assert all(len(w.cache.node_info(name).pods) > 2 for name in ("n1", "n2"))


async def test_a_pod_of_an_unknown_profile_is_dropped():
    w = make_core(binding(), N1)
    w.add_pod(make_pod(scheduler_name="another-scheduler"))
    await w.turn()

    assert ([], []) == (w.records, list(w.queue.in_flight()))


async def test_a_pod_that_is_being_deleted_is_skipped():
    w = make_core(binding(), N1)
    pod = pending()
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    w.add_pod(msgspec.structs.replace(pod, metadata=metadata))
    await w.turn()

    assert [("FailedScheduling", "skip schedule deleting pod: default/p0")] == w.notes
    assert [] == list(w.queue.in_flight())
    assert 0 == w.cache.pod_count()


async def test_an_assumed_pod_is_skipped_silently():
    w = make_core(binding(), N1)
    pod = w.add_pod(pending())
    w.cache.assume_pod(pod.placed_on("n1"))
    await w.turn()

    assert ([], [], []) == (w.notes, w.records, list(w.queue.in_flight()))


async def test_a_pod_that_fits_nowhere_goes_back_with_event_condition_and_rejectors():
    w = make_core(binding(filter=[Rejects("F", {"n1": "f", "n2": "f"})]), N1, N2)
    w.add_pod(pending())
    await w.turn()

    message = "0/2 nodes are available: 2 f."
    assert {"F"} == w.waits().unschedulable_plugins
    assert [("FailedScheduling", message)] == w.notes
    [condition] = w.conditions
    assert ("PodScheduled", "False", "Unschedulable", message) == (
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
    )
    assert "1970-01-01T00:16:40Z" == condition.last_transition_time
    assert "unschedulable" == w.records[0].result
    assert 1 == w.waits().unschedulable_count


async def test_without_nodes_it_is_unschedulable_for_users_and_an_error_for_the_queue():
    plugin = PostFilters("P", SUCCESS)
    w = make_core(binding(post_filter=[plugin]))
    w.add_pod(pending())
    await w.turn()

    assert "Unschedulable" == w.conditions[0].reason
    assert "no nodes available to schedule pods" == w.conditions[0].message
    assert (set(), 1) == (w.waits().rejectors, w.waits().consecutive_errors_count)
    assert [] == plugin.calls


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (binding(filter=[Rejects("F", {"n1": failed("boom")})]), 'running "F" filter plugin: boom'),
        (binding(pre_filter=[PreFilters("F", ValueError("boom"))]), 'running PreFilter plugin "F": boom'),
        (
            binding(score=[Normalizes("S", {"n1": 100}, add=1, in_process=False)]),
            OUT_OF_RANGE,
        ),
    ],
    ids=["filter", "pre-filter", "score"],
)
@reports(
    "attempt-breaks",
    condition="`PodScheduled=False`: `SchedulerError`, with the cause",
    event="`FailedScheduling` of the pod",
    log="`attempt failed`, once for a pod and cause",
    metric="`scheduler_schedule_attempts_total` with result `error`",
)
async def test_a_plugin_that_breaks_is_a_scheduler_error(profile, message, caplog):
    w = make_core(profile, N1, N2)
    w.add_pod(pending(nominated_node_name="gone"))
    await w.turn()

    assert ("PodScheduled", "False") == (w.conditions[0].type, w.conditions[0].status)
    assert ("SchedulerError", message) == (w.conditions[0].reason, w.conditions[0].message)
    assert (set(), 1) == (w.waits().rejectors, w.waits().consecutive_errors_count)
    assert [""] == w.nominations
    assert "error" == w.records[0].result
    metrics = SchedulerMetrics()
    metrics.on_record(w.records[0])
    assert (
        b'scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1.0' in metrics.text()
    )
    assert f"attempt failed pod=default/p0 err={message}" in caplog.messages
    assert ("FailedScheduling", message) in w.notes


class Floats(Scores):
    def score(self, state, pod, nodes):
        return super().score(state, pod, nodes) / 2


@reports("attempt-breaks", log="`scheduling cycle broke off`, with a traceback")
async def test_an_answer_of_the_wrong_kind_costs_one_attempt(caplog):
    """The loop goes on with the next pod."""
    w = make_core(binding(score=[Floats("S")]), N1, N2)
    w.add_pod(pending())
    await w.turn()

    assert "SchedulerError" == w.conditions[0].reason
    assert "scheduling cycle broke off pod=default/p0" in caplog.text


@pytest.mark.parametrize(
    ("plugin", "message", "nominated", "held"),
    [
        (PostFilters("P", SUCCESS, ON_N1), "0/1 nodes are available: 1 f.", ["n1"], "n1"),
        (PostFilters("P", unschedulable("no"), None), "0/1 nodes are available: 1 f. no", [None], "n9"),
        (PostFilters("P", unresolvable("no"), CLEAR), "0/1 nodes are available: 1 f. no", [""], ""),
        (PostFilters("P", failed("boom")), "0/1 nodes are available: 1 f. boom", [None], "n9"),
    ],
    ids=["nominates", "keeps", "clears", "breaks"],
)
async def test_post_filter_decides_on_the_nomination_and_ends_the_message(plugin, message, nominated, held):
    w = make_core(binding(filter=[Rejects("F", {"n1": "f"})], post_filter=[plugin]), N1)
    w.add_pod(pending(nominated_node_name="n9"))
    await w.turn()

    assert message == w.conditions[0].message
    assert "Unschedulable" == w.conditions[0].reason
    assert nominated == w.nominations
    assert held == w.queue.nominator.node_of("default-p0")
    assert {"F"} == w.waits().unschedulable_plugins


async def test_post_filter_runs_after_a_rejecting_pre_filter_and_sees_every_node():
    plugin = PostFilters("P", unschedulable("p"))
    profile = binding(
        pre_filter=[PreFilters("A", unschedulable("a")), PreFilters("B", unschedulable("b"))],
        post_filter=[plugin],
    )
    w = make_core(profile, N1, N2)
    w.add_pod(pending())
    await w.turn()

    assert "0/2 nodes are available: b. p" == w.conditions[0].message
    assert {"B"} == w.waits().rejectors
    assert [True, True] == plugin.diagnosis.rows_with(Code.UNSCHEDULABLE).tolist()


async def test_an_assumed_pod_is_nominated_no_longer():
    w = make_core(binding(), N1)
    w.add_pod(pending(nominated_node_name="n1"))
    assert "n1" == w.queue.nominator.node_of("default-p0")
    await w.turn()

    assert "" == w.queue.nominator.node_of("default-p0")


class ReservesRemotely(Reserves):
    """A sidecar that answers Reserve later."""

    in_process = False

    def reserves_remotely(self):
        return True

    async def reserve(self, *_):
        self.note("reserve sent")
        await asyncio.Event().wait()


async def test_reserve_is_sent_before_the_next_cycle_asks():
    """What a sidecar is asked about the next pod comes after its Reserve for this one, answered or not."""
    calls = []
    w = make_core(
        binding(reserve=[ReservesRemotely("R", calls=calls)], filter=[Rejects("R", calls=calls)]), N1
    )
    async with asyncio.TaskGroup() as tasks:
        real = AsyncioBackground(tasks)
        w.background.spawn, w.background.breathe = real.spawn, real.breathe
        for name in ("p0", "p1"):
            w.add_pod(pending(name))
            await w.schedule_one.schedule(w.queue.pop())
        await real.settle(0)

    assert ["R.filter", "R.reserve sent"] * 2 == calls


async def test_a_pod_that_cannot_be_assumed_is_an_error():
    calls = []
    w = make_core(binding(reserve=[Reserves("R", calls=calls)]), N1)
    w.add_pod(pending())
    w.cache.add_pod(make_pod("p0", node_name="n1"))
    await w.turn()

    assert "SchedulerError" == w.conditions[0].reason
    assert "is in the cache, so can't be assumed" in w.conditions[0].message
    assert [] == calls


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING])
@pytest.mark.parametrize("point", ["reserve", "permit"])
async def test_a_rejection_at_reserve_or_permit_undoes_everything(point, code):
    """All reserve plugins let go in reverse, the pod is forgotten, and the one node is the message's."""
    calls = []
    status = Status(code, ("r",))
    reserve = [Reserves("A", calls=calls), Reserves("R", status if point == "reserve" else SUCCESS, calls)]
    permit = [Permits("R", status if point == "permit" else SUCCESS)]
    w = make_core(binding(reserve=reserve, permit=permit), N1, N2)
    w.add_pod(pending(nominated_node_name="n9"))
    await w.turn()

    assert ["A.reserve", "R.reserve", "R.unreserve", "A.unreserve"] == calls
    assert 0 == w.cache.pod_count()
    assert ("Unschedulable", "0/1 nodes are available: 1 r.") == (
        w.conditions[0].reason,
        w.conditions[0].message,
    )
    assert {"R"} == w.waits().rejectors
    assert ({"R"} if code is Code.PENDING else set()) == w.waits().pending_plugins
    assert [""] == w.nominations


@pytest.mark.parametrize("point", ["reserve", "permit"])
async def test_an_error_at_reserve_or_permit_undoes_everything(point):
    kind = Reserves if point == "reserve" else Permits
    w = make_core(binding(**{point: [kind("R", ValueError("boom"))]}), N1)
    w.add_pod(pending())
    await w.turn()

    assert f'running {point.capitalize()} plugin "R": boom' == w.conditions[0].message
    assert "SchedulerError" == w.conditions[0].reason
    assert 0 == w.cache.pod_count()


async def test_no_pod_is_retried_after_a_rejection_at_reserve():
    """The pod was on no node for others to see, so nothing became free."""
    w = make_core(binding(reserve=[Reserves("R", unschedulable("r"))]), N1)
    moved = []
    w.queue.move_all = lambda event, *_: moved.append(event.label)
    w.add_pod(pending())
    await w.turn()

    assert [] == moved


# What became of the pod meanwhile: core 4.14, step 4.


def failing():
    return make_core(binding(filter=[Rejects("F", ["n1"])]), N1)


async def fail(w, meanwhile):
    info = w.queue.pop()
    meanwhile()
    await w.schedule_one.schedule(info)
    w.background.run()


async def test_a_pod_that_is_gone_is_not_put_back_but_reported():
    w = failing()
    pod = w.add_pod(pending())
    await fail(w, lambda: w.unassigned.remove(pod))

    assert w.waits() is None
    assert [] == list(w.queue.in_flight())
    assert (1, 1) == (len(w.notes), len(w.conditions))


async def test_a_recreated_pod_is_left_alone():
    w = failing()
    w.add_pod(pending())
    await fail(w, lambda: w.unassigned.put(pending(uid="another")))

    assert w.waits() is None
    assert [] == list(w.queue.in_flight())
    assert ([], []) == (w.notes, w.conditions)


async def test_a_pod_that_changed_goes_back_as_it_is_now():
    w = failing()
    w.add_pod(pending())
    await fail(w, lambda: w.unassigned.put(pending(labels={"new": "yes"})))

    assert {"new": "yes"} == w.waits().pod.labels


@reports("status-not-written", log="`status not written`, with the cause; it is tried again")
async def test_a_status_that_cannot_be_written_is_no_matter(caplog):
    w = failing()
    w.writer.failure = ConnectionError("cut")
    w.add_pod(pending())
    await w.turn()

    assert w.waits() is not None
    assert "status not written pod=default/p0 err=cut" in caplog.text


@reports("profile-gone", log="`no profile`, with pod and profile; the pod is tried no more")
async def test_a_pod_whose_profile_is_gone_is_let_go(caplog):
    """A profile that went while its pod waited: that is logged, and the next pod has its turn."""
    w = make_core(binding(), N1)
    w.add_pod(pending())
    w.schedule_one.frameworks.clear()
    await w.turn()

    assert "no profile pod=default/p0 profile=default-scheduler" in caplog.text
    assert [] == list(w.queue.in_flight())


@reports("contradicted", log="`pod not put back`, with the cause")
async def test_a_pod_that_is_in_the_queue_already_is_not_put_back(caplog):
    """It is tried from where it is, and the log has where that is."""
    w = make_core(binding(), N1)
    w.add_pod(pending())
    info = w.queue.pop()
    w.queue.add(info.pod)
    w.schedule_one.failure.handle(info, failed("broken"), None)
    await w.turn()

    assert "pod not put back pod=default/p0 err=Pod default/p0 is already present in" in caplog.text
