"""The circuit of a plugin that keeps failing: open, probed, closed; and failures that cost pods nothing."""

import pytest

from berth.config.out_of_tree.sidecars import ExemptPods, SidecarSpec
from berth.out_of_tree import time_budget
from berth.out_of_tree.connections.breaker import FAILURES_IN_A_ROW, FIRST_PAUSE_SECONDS, Breaker, Circuit
from berth.out_of_tree.connections.conditions import ConditionType
from berth.out_of_tree.errors import CycleTimeUsedUpError, NotConnectedError, ProtocolError
from berth.out_of_tree.time_budget import CYCLE_SECONDS, LONGEST_SECONDS, wanted_seconds
from berth.testing.builders import make_pod
from berth_plugin_proto import identity_pb2
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import NAME, Scripted, cycle, hosted, passing


class Bench:
    """A breaker under a clock that tests turn."""

    def __init__(self):
        self.seconds = 0.0
        self.turns = []
        self.breaker = Breaker(lambda: self.seconds, self.turns.append)

    def fail(self, times):
        """Let that many calls be made and fail; how many were let through."""
        made = 0
        for _ in range(times):
            if self.breaker.admits():
                made += 1
                self.breaker.failed()
        return made


def test_opens_after_failures_in_a_row():
    """A success in between starts the count afresh; then nothing goes through."""
    bench = Bench()
    bench.fail(FAILURES_IN_A_ROW - 1)
    bench.breaker.succeeded()
    assert FAILURES_IN_A_ROW == bench.fail(2 * FAILURES_IN_A_ROW)
    assert [Circuit.OPEN] == bench.turns
    assert FIRST_PAUSE_SECONDS == bench.breaker.pause_left


def test_one_probe_at_a_time():
    """After the pause one call is let through; its success lets all through again."""
    bench = Bench()
    bench.fail(FAILURES_IN_A_ROW)
    bench.seconds += FIRST_PAUSE_SECONDS
    assert [True, False] == [bench.breaker.admits(), bench.breaker.admits()]
    bench.breaker.succeeded()

    assert bench.breaker.admits()
    assert [Circuit.OPEN, Circuit.HALF_OPEN, Circuit.CLOSED] == bench.turns


def test_a_failed_probe_doubles_the_pause():
    """The longer it lasts the more seldom it is tried."""
    bench = Bench()
    bench.fail(FAILURES_IN_A_ROW)
    bench.seconds += FIRST_PAUSE_SECONDS
    bench.fail(1)

    assert 2 * FIRST_PAUSE_SECONDS == bench.breaker.pause_left


def test_a_probe_that_tells_nothing_is_made_again():
    """A probe that was cancelled leaves room for another."""
    bench = Bench()
    bench.fail(FAILURES_IN_A_ROW)
    bench.seconds += FIRST_PAUSE_SECONDS
    bench.breaker.admits()
    bench.breaker.gave_up()

    assert bench.breaker.admits()


def test_another_process_is_probed_at_once():
    """A plugin that came back need not wait for the pause to end."""
    bench = Bench()
    bench.fail(FAILURES_IN_A_ROW)
    bench.breaker.restarted()

    assert bench.breaker.admits()


class Counting:
    """Metrics that note what they are given."""

    def __init__(self):
        self.reported = []

    def called(self, plugin, method, outcome, seconds):
        assert plugin == NAME
        assert seconds >= 0
        self.reported.append((method, outcome))

    def ignored(self, plugin, point):
        self.reported.append((plugin, point))

    def hinted(self, plugin, answer, count):
        self.reported.append((plugin, answer, count))

    def requeued(self, plugin):
        self.reported.append(("requeued", plugin))

    def rescued(self, plugin):
        self.reported.append(("rescued", plugin))

    def compared(self, plugin, outcome):
        self.reported.append((plugin, outcome))


@reports("plugin-garbled", log="`plugin keeps failing, not called`, with for how long and the cause")
async def test_garbage_opens_the_circuit(caplog):
    """A plugin that answers garbage is left alone after a while, says so, and is tried again."""
    plugin, metrics = Scripted(), Counting()
    wrong = True

    async def reply(request, _context):
        return passing(request, **({"generation": 99} if wrong else {}))

    plugin.replies["FilterScore"] = reply
    async with hosted(plugin, metrics=metrics) as harness:
        await harness.up()
        for _ in range(FAILURES_IN_A_ROW):
            with pytest.raises(ProtocolError):
                await harness.filter()
        with pytest.raises(NotConnectedError, match="not called: plugin scripted: it holds generation 99"):
            await harness.filter()
        assert FAILURES_IN_A_ROW == len(plugin.requests("FilterScore"))
        conditions = {condition.kind: condition for condition in harness.connection.conditions}
        assert not conditions[ConditionType.CIRCUIT_CLOSED].holds
        assert "it holds generation 99" in conditions[ConditionType.CIRCUIT_CLOSED].message
        assert "plugin keeps failing, not called plugin=scripted seconds=" in caplog.text
        wrong = False
        harness.connection.breaker.restarted()
        await harness.filter()
        assert harness.connection.conditions.holds(ConditionType.CIRCUIT_CLOSED)

    garbled = [("FilterScore", "garbled")] * FAILURES_IN_A_ROW
    assert [*garbled, ("FilterScore", "refused"), ("FilterScore", "ok")] == metrics.reported


@pytest.mark.parametrize(
    "exempt", [ExemptPods(frozenset({"default"})), ExemptPods(match_labels={"app": "x"})]
)
async def test_exempt_pods(exempt):
    """A failure costs exempt pods nothing: a plugin's own pod is scheduled while the plugin is down."""
    plugin, metrics = Scripted(), Counting()
    async with hosted(plugin, exempt=exempt, metrics=metrics) as harness:
        await harness.up()
        codes = await harness.filter(harness.pod(labels={"app": "x"}))

    assert [0, 0, 0] == codes.tolist()
    assert (NAME, "filter") in metrics.reported


def test_who_is_exempt():
    """Namespaces and labels have to fit, as far as they are given."""
    exempt = ExemptPods(frozenset({"plugins"}), {"app": "x"})
    pods = [
        make_pod("a", namespace="plugins", labels={"app": "x"}),
        make_pod("b", namespace="plugins"),
        make_pod("c", labels={"app": "x"}),
    ]
    assert [True, False, False] == [exempt.covers(pod) for pod in pods]


async def test_cycle_budget():
    """A cycle that has used its time up asks no plugin any more, and that is not the plugin's fault."""
    async with hosted(Scripted()) as harness:
        await harness.up()
        state = cycle()
        time_budget.seconds_left(state, "Filter")
        key = (time_budget._Deadline, False)
        state.write(key, time_budget._Deadline(state.get(key).at - CYCLE_SECONDS))
        with pytest.raises(CycleTimeUsedUpError, match="the cycle's time is used up"):
            await harness.filter(state=state)
        assert harness.connection.breaker.circuit is Circuit.CLOSED


def test_wanted_deadlines():
    """A plugin may ask for more at single points; the host clamps it."""
    wishes = identity_pb2.Capabilities()
    wishes.wanted_deadline.seconds = 2
    slow = wishes.wanted_deadlines.add(extension_point=identity_pb2.EXTENSION_POINT_PRE_BIND)
    slow.deadline.seconds = 100
    spec = SidecarSpec("a", "h:1")

    assert [2, LONGEST_SECONDS] == [wanted_seconds(spec, wishes, name) for name in ("Filter", "PreBind")]
