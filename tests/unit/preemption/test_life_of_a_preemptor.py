"""A whole core on fakes: what becomes of a preemptor, its victims and others nominated to its node."""

import msgspec
import pytest

from berth.framework.handle import PodGoneError
from berth.scheduler.core_metrics import CoreMetrics
from tests.default_core import DefaultCore
from tests.unit.preemption.kit import leaving, node, placed, preemptor


class Numbers:
    """Metrics that are remembered."""

    def __init__(self):
        self.attempts = 0
        self.of_victims = []

    def attempted(self):
        self.attempts += 1

    def chosen(self, _preemptor, candidate):
        self.of_victims.append(len(candidate.victims))

    def evaluated(self, *_):
        """Counted in another test."""

    def evicted(self, *_, **__):
        """Counted in another test."""


class Life(DefaultCore):
    """A core with one node of 4 CPUs and the pods given on it; writes land as soon as they are made."""

    def __init__(self, *pods):
        self.numbers, self.versions = Numbers(), 0
        super().__init__(CoreMetrics(preemption=self.numbers))
        self.queue = self.core.queue
        self.core.node_handler.on_add(node())
        for pod in pods:
            self.core.pod_handler.on_add(pod)

    def update(self, old, **status):
        """The watch shows a new version of a pod."""
        self.versions += 1
        metadata = msgspec.structs.replace(old.metadata, resource_version=str(self.versions))
        new = msgspec.structs.replace(
            old, metadata=metadata, status=msgspec.structs.replace(old.status, **status)
        )
        self.core.pod_handler.on_update(old, new)
        return new

    async def turn(self):
        """Schedule the next pod, without what runs in the background."""
        record = self.queue.pop()
        assert record is not None, "a pod is ready"
        await self.core.schedule_one.schedule(record)
        return record

    def later(self, seconds=30):
        """Let time pass."""
        self.clock.seconds += seconds
        self.queue.flush()

    def message(self):
        """What the last failure says."""
        return [note for _, _, reason, _, note in self.recorder.events if reason == "FailedScheduling"][-1]

    def place(self, pod):
        """Where the pod waits: ready, gated, or in the pool."""
        record = self.queue.record(pod.namespace, pod.name)
        if record is None:
            return "nowhere"
        if record.gated:
            return f"gated by {record.gating_plugin}"
        return "ready" if self.queue.ready() else "pool"


@pytest.fixture
def live():
    """Makes lives, and drops what they left undone."""
    lives = []

    def begin(*pods):
        lives.append(Life(*pods))
        return lives[-1]

    yield begin
    for life in lives:
        life.background.close()


HIGH = preemptor()
LOW = placed("low", "4")


async def test_from_full_node_to_bound(live):
    """The victim goes, the preemptor comes: nominated at once, bound once there is room."""
    life = live(LOW)
    life.core.pod_handler.on_add(HIGH)
    await life.turn()
    nominated = [pod.name for pod in life.queue.nominator.nominated_pods_for_node("n0")]
    waits = life.place(HIGH)
    life.background.run()
    life.later()
    still_waits = life.place(HIGH)
    life.core.pod_handler.on_delete(leaving(LOW))
    life.later()
    await life.turn()
    life.background.run()

    assert (["high"], "pool", "pool") == (nominated, waits, still_waits)
    assert [LOW] == life.writer.deleted
    assert [("high", "n0")] == [(pod.name, name) for pod, name in life.writer.bindings]
    assert [] == list(life.queue.nominator.nodes_with_nominations())
    assert (1, [1]) == (life.numbers.attempts, life.numbers.of_victims)


async def test_the_failure_names_no_preemption_once_a_node_is_nominated(live):
    life = live(LOW)
    life.core.pod_handler.on_add(HIGH)
    await life.turn()
    life.background.run()

    assert "0/1 nodes are available: 1 Insufficient cpu." == life.message().split(" no new claims")[0]
    assert "n0" in [patch[1] for pod, patch in life.writer.patches if pod.name == "high"]


async def test_11_8_2_policy_never(live):
    life = live(LOW)
    life.core.pod_handler.on_add(preemptor(preemption_policy="Never"))
    await life.turn()

    assert life.message().endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert ([], []) == (life.writer.deleted, list(life.queue.nominator.nodes_with_nominations()))


async def test_6_6_gate_an_event_during_the_evictions_does_not_bring_the_preemptor_back(live):
    """The other victim's end would: but evictions are still going on, until the watch shows the last."""
    first, last = placed("first", "2", 5), placed("last", "2", 1)
    life = live(first, last)
    life.core.pod_handler.on_add(HIGH)
    await life.turn()
    life.core.pod_handler.on_delete(leaving(first))
    gated = life.place(HIGH)
    life.background.run()
    life.core.pod_handler.on_delete(leaving(last))
    life.later()

    assert ("gated by DefaultPreemption", "ready") == (gated, life.place(HIGH))


async def test_6_6_gate_a_preemptor_whose_last_victim_left_during_its_own_attempt_comes_back(live):
    """No event is left that could un-gate it; the end of the evictions does."""
    life = live(LOW)
    life.core.pod_handler.on_add(HIGH)
    await life.turn()
    life.core.pod_handler.on_delete(leaving(LOW))
    gated = life.place(HIGH)
    life.writer.failure = PodGoneError("not found")
    life.background.run()

    assert ("gated by DefaultPreemption", "ready") == (gated, life.place(HIGH))


async def test_6_6_async_3_5_a_failed_eviction_brings_the_preemptor_back(live):
    life = live(LOW)
    life.core.pod_handler.on_add(HIGH)
    life.writer.failure = RuntimeError("refused")
    await life.turn()
    life.background.run()

    assert "ready" == life.place(HIGH)


async def test_6_3_3_a_nomination_that_was_not_written_yet_counts(live):
    """The preemptor, tried again before its own nomination has come back, evicts no second victim."""
    life = live(LOW)
    life.core.pod_handler.on_add(HIGH)
    await life.turn()
    life.background.run()
    (condition,) = [patch[0] for pod, patch in life.writer.patches if pod.name == "low"]
    status = msgspec.structs.replace(LOW.status, conditions=(condition,))
    life.core.pod_handler.on_update(LOW, leaving(msgspec.structs.replace(LOW, status=status)))
    life.queue.activate([HIGH])
    await life.turn()

    assert life.message().endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert [LOW] == life.writer.deleted


async def test_6_3_3_while_victims_leave_no_other_pod_has_to(live):
    """The nominated pod, tried again in between, keeps its nomination and evicts no second victim."""
    life = live(LOW)
    life.core.pod_handler.on_add(HIGH)
    await life.turn()
    life.background.run()
    (condition,) = [patch[0] for pod, patch in life.writer.patches if pod.name == "low"]
    high = life.update(HIGH, nominated_node_name="n0")
    gone = leaving(
        msgspec.structs.replace(LOW, status=msgspec.structs.replace(LOW.status, conditions=(condition,)))
    )
    life.core.pod_handler.on_update(LOW, gone)
    life.queue.activate([high])
    await life.turn()

    assert life.message().endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert ["n0"] == list(life.queue.nominator.nodes_with_nominations())
    assert [LOW] == life.writer.deleted


async def test_2_14_a_second_preemptor_does_not_take_what_was_promised_to_the_first(live):
    """Of two pods that need the whole node, only the first evicts for it."""
    life = live(LOW)
    for name in ("first", "second"):
        life.core.pod_handler.on_add(preemptor(name=name))
    await life.turn()
    await life.turn()
    life.background.run()

    assert [LOW] == life.writer.deleted
    assert ["first"] == [pod.name for pod in life.queue.nominator.nominated_pods_for_node("n0")]


async def test_11_8_8_a_lower_nomination_is_taken_back_and_the_rest_may_try(live):
    """The pod that loses its nomination, and those that it held off, are tried again."""
    life = live(LOW)
    lower = preemptor("4", 5, "lower")
    life.core.pod_handler.on_add(lower)
    await life.turn()
    life.background.run()
    lower = life.update(lower, nominated_node_name="n0")
    life.core.pod_handler.on_add(HIGH)
    await life.turn()
    life.background.run()

    taken_back = [pod.name for pod, patch in life.writer.patches if patch == (None, "")]
    assert ["lower"] == taken_back
    life.core.pod_handler.on_update(LOW, leaving(LOW))
    life.update(lower, nominated_node_name="")
    life.later()
    assert ["high"] == [pod.name for pod in life.queue.nominator.nominated_pods_for_node("n0")]
    assert "ready" == life.place(lower)
