"""How large budgets are, and what those pay who go over them."""

from itertools import pairwise

import pytest

from berth.cycle.budgets import (
    GROUP_SECONDS,
    LEAST_SECONDS,
    LEAST_SECONDS_OF_DEBTORS,
    LONGEST_HOLD_SECONDS,
    MAX_SECONDS,
    NODE_SECONDS,
    ORDINARY_PODS,
    SEVERAL_NAMESPACES,
    CycleBudgets,
)
from berth.cycle.debts import (
    BETWEEN_TURNS_SECONDS,
    LONGEST_DEBT_SECONDS,
    LONGEST_PAUSE_SECONDS,
    MAX_DEBTORS,
    PAUSE_FOR_CPU,
)
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.testing.builders import make_pod
from berth.testing.handles import ManualClock, Unstarted
from tests.failures.reporting import reports


class Office:
    """Budgets on a clock of its own."""

    def __init__(self):
        self.clock = ManualClock(1000.0)
        self.exceeded = []
        self.released = []
        self.budgets = CycleBudgets(
            self.clock, Unstarted(), self.exceeded.append, on_forgiven=self.released.append
        )

    def info(self, name="p", namespace="default"):
        return QueuedPodInfo(make_pod(name, namespace=namespace), self.clock.monotonic())

    def cycle(self, info, seconds, *, fails=True):
        """A cycle that uses so much CPU."""
        meter = self.budgets.begin(info, 0)
        meter.resume()
        self.clock.seconds += seconds
        meter.verdict("Slow")
        meter.pause()
        (self.budgets.hold if fails else self.budgets.settle)(info)
        return meter

    def held(self, info):
        return 0.0 if info.held_until is None else info.held_until - self.clock.monotonic()


def no_others(_most):
    """No other pod is ready."""
    return ()


@pytest.fixture
def office():
    return Office()


def test_a_budget_is_at_least_a_tenth_of_a_second(office):
    assert LEAST_SECONDS == office.budgets.begin(office.info(), 0).limit_seconds


def test_a_budget_grows_with_the_cluster(office):
    assert LEAST_SECONDS + 5000 * NODE_SECONDS == office.budgets.begin(office.info(), 5000).limit_seconds


def test_a_budget_is_a_hundred_ordinary_pods(office):
    """Ordinary is the running average of cycles within budget."""
    for _ in range(2000):
        office.cycle(office.info(), 0.01)

    limit = office.budgets.begin(office.info(), 0).limit_seconds

    assert limit == pytest.approx(ORDINARY_PODS * 0.01, rel=0.01)


def test_cycles_over_budget_do_not_raise_it(office):
    for _ in range(100):
        office.cycle(office.info(), 2 * LEAST_SECONDS)

    assert 0.0 == office.budgets.ordinary_seconds


def test_pods_that_stay_just_within_cannot_raise_it_for_ever(office):
    for _ in range(2000):
        limit = office.budgets.begin(office.info(), 0).limit_seconds
        office.cycle(office.info(), 0.99 * limit)

    assert MAX_SECONDS == office.budgets.begin(office.info(), 0).limit_seconds


def test_long_cycles_of_some_do_not_raise_it(office):
    """A third of all cycles stay just within the budget: the average is that of the others."""
    for _ in range(1000):
        office.cycle(office.info(namespace="hostile"), 0.9 * LEAST_SECONDS)
        for _ in range(2):
            office.cycle(office.info(), 0.0005)

    assert office.budgets.ordinary_seconds < LEAST_SECONDS / ORDINARY_PODS


def test_one_namespace_after_the_other_gets_half_the_budget(office):
    """Their first cycles take no longer together than two budgets, and none owes for having been cut."""
    limits = []
    for i in range(4):
        meter = office.cycle(office.info(namespace=f"ns-{i}"), 0.9 * LEAST_SECONDS / 2**i)
        limits.append(meter.limit_seconds)
    cut = office.cycle(office.info(namespace="another"), 0.02)

    assert [LEAST_SECONDS / 2**i for i in range(3)] == limits[:3]
    assert LEAST_SECONDS_OF_DEBTORS <= cut.limit_seconds < 0.02
    assert 0 == office.budgets.debts.owed("another")
    office.clock.seconds += 1
    assert LEAST_SECONDS == office.budgets.begin(office.info(namespace="another"), 0).limit_seconds


def test_a_namespace_yields_after_a_long_cycle(office):
    """To pods of others that are ready, for ten times the CPU: not to those of another that yields."""
    for namespace in ("long", "longer"):
        office.cycle(office.info(namespace=namespace), LEAST_SECONDS / 4)
    own, other, yielding = (make_pod("p", namespace=each) for each in ("long", "quiet", "longer"))

    assert 0.0 == office.budgets.wait_seconds(own, lambda _: ())
    assert 0.0 == office.budgets.wait_seconds(own, lambda _: (own, yielding))
    assert BETWEEN_TURNS_SECONDS == office.budgets.wait_seconds(own, lambda _: (own, other))
    assert 0.0 == office.budgets.wait_seconds(other, lambda _: (own,))
    office.clock.seconds += PAUSE_FOR_CPU * LEAST_SECONDS / 4
    assert 0.0 == office.budgets.wait_seconds(own, lambda _: (other,))


def test_a_group_has_the_budgets_of_its_pods_up_to_a_limit(office):
    def limit(count):
        return office.budgets.begin_group([office.info(f"p{i}") for i in range(count)], 0).limit_seconds

    assert [3 * LEAST_SECONDS, GROUP_SECONDS] == [limit(3), limit(1000)]


def test_a_group_counts_as_its_pods(office):
    """What an ordinary pod costs does not grow with groups."""
    infos = [office.info(f"p{i}") for i in range(10)]
    meter = office.budgets.begin_group(infos, 0)
    meter.resume()
    office.clock.seconds += 0.1
    meter.pause()
    for info in infos:
        office.budgets.settle(info)

    alone = Office()
    alone.cycle(alone.info(), 0.01)
    assert office.budgets.ordinary_seconds == pytest.approx(alone.budgets.ordinary_seconds)


def test_who_stays_within_is_not_held(office):
    info = office.info()
    office.cycle(info, LEAST_SECONDS / 2)

    assert info.held_until is None
    assert not office.exceeded


def test_who_goes_over_is_held_a_hundred_times_as_long(office):
    info = office.info()
    office.cycle(info, 0.3)

    assert office.held(info) == pytest.approx(30)
    assert [info.pod.spec.scheduler_name] == office.exceeded


def test_each_time_at_least_twice_as_long_up_to_five_minutes(office):
    """The pod is held for all that it used so far, doubled; long after its namespace has paid."""
    info, holds = office.info(), []
    for _ in range(5):
        office.clock.seconds += 2 * LONGEST_HOLD_SECONDS
        office.cycle(info, 0.3)
        holds.append(office.held(info))

    assert holds[0] == pytest.approx(30)
    assert all(later >= min(2 * sooner, LONGEST_HOLD_SECONDS) for sooner, later in pairwise(holds))
    assert holds[-1] == pytest.approx(LONGEST_HOLD_SECONDS)


def test_what_is_noticed_only_at_the_end_counts(office):
    info = office.info()
    meter = office.budgets.begin(info, 0)
    meter.resume()
    office.clock.seconds += 0.3
    meter.pause()
    office.budgets.hold(info)

    assert office.held(info) == pytest.approx(30)
    assert 0.0 == office.budgets.ordinary_seconds


def test_a_cycle_within_budget_ends_that(office):
    info = office.info()
    office.cycle(info, 0.3)
    office.clock.seconds += 100
    office.cycle(info, 0.01)

    assert (0, 0.0, None) == (info.over_budget_count, info.over_budget_seconds, info.held_until)


def test_a_pod_that_was_placed_over_budget_is_counted(office):
    """Its namespace owes for it, once, whatever comes later."""
    info = office.info()
    office.cycle(info, 0.3, fails=False)
    owed = office.budgets.debts.owed("default")
    office.budgets.hold(info)

    assert owed == office.budgets.debts.owed("default")
    assert 1 == len(office.exceeded)


def test_pods_of_one_namespace_come_back_one_debt_after_the_other(office):
    """A thousand pods use a hundredth of a CPU together."""
    infos = [office.info(f"p{i}") for i in range(1000)]
    used = 0.0
    start = office.clock.monotonic()
    for info in infos:
        used += office.cycle(info, 0.012 if len(office.budgets.debts) else 0.3).used_seconds

    last = max(info.held_until for info in infos)
    assert last - start >= min(ORDINARY_PODS * used, LONGEST_DEBT_SECONDS)


def test_new_pods_of_a_debtor_have_a_small_budget(office):
    """And so has a pod that is made anew under another name; other namespaces have the usual one."""
    office.cycle(office.info(), 0.3)
    office.clock.seconds += LONGEST_PAUSE_SECONDS
    limits = [office.budgets.begin(office.info("new", ns), 0).limit_seconds for ns in ("default", "other")]

    assert [LEAST_SECONDS_OF_DEBTORS, LEAST_SECONDS] == limits


def test_a_namespace_that_went_over_has_no_turn_for_a_while(office):
    """Ten times the CPU that it used; other namespaces, and those that keep to their budgets, go on."""
    office.cycle(office.info("other", "within"), 0.05)
    office.cycle(office.info(), 0.3)

    waits = [
        office.budgets.wait_seconds(make_pod("p", namespace=ns), no_others) for ns in ("within", "default")
    ]
    assert [0.0, pytest.approx(PAUSE_FOR_CPU * 0.3)] == waits
    office.clock.seconds += PAUSE_FOR_CPU * 0.3
    assert 0.0 == office.budgets.wait_seconds(make_pod("p"), no_others)


def test_no_cycle_keeps_its_namespace_waiting_for_longer_than_a_bound(office):
    office.cycle(office.info(), 60.0)

    assert LONGEST_PAUSE_SECONDS == pytest.approx(office.budgets.wait_seconds(make_pod("p"), no_others))


def test_pods_that_had_to_wait_come_back_one_after_the_other(office):
    """Of ten thousand of them only so many a second are looked at and put off again."""
    office.cycle(office.info(), 0.3)
    waits = [office.budgets.wait_seconds(make_pod(f"p{i}"), no_others) for i in range(100)]

    assert [BETWEEN_TURNS_SECONDS] * 99 == pytest.approx([b - a for a, b in pairwise(waits)])


def test_a_debt_is_forgotten_once_it_is_paid(office):
    office.cycle(office.info(), 0.3)
    office.clock.seconds += 31

    assert LEAST_SECONDS == office.budgets.begin(office.info(), 0).limit_seconds
    assert 0 == len(office.budgets.debts)


def test_debts_are_kept_for_so_many_namespaces_at_most(office):
    for number in range(MAX_DEBTORS + 50):
        office.cycle(office.info("p", f"ns{number}"), 0.3)

    assert len(office.budgets.debts) <= MAX_DEBTORS


def test_the_log_says_who_and_how_much(office, caplog):
    office.cycle(office.info("greedy"), 0.3)

    exceeded, held = caplog.messages
    assert "scheduling cycle exceeded its budget pod=default/greedy" in exceeded
    assert "in=Slow" in exceeded
    assert "pod held back pod=default/greedy seconds=30.0 over_budget_attempts=1" in held


@reports(
    "budget-raised", log="`budget of scheduling cycles raised`, with the namespaces; none is held back for it"
)
def test_a_budget_that_one_namespace_after_the_other_exceeds_is_doubled(office, caplog):
    """Nothing but the budget can be at fault then: those who went over owe nothing."""
    infos = [office.info(namespace=f"ns-{i}") for i in range(SEVERAL_NAMESPACES)]
    for info in infos:
        office.cycle(info, 2 * LEAST_SECONDS)

    assert 2 * LEAST_SECONDS == pytest.approx(office.budgets.begin(infos[0], 0).limit_seconds)
    assert 0 == len(office.budgets.debts)
    assert office.held(infos[-1]) == 0
    assert "budget of scheduling cycles raised budget_seconds=0.200 namespaces=ns-0" in caplog.text


def test_a_cycle_within_its_budget_ends_the_row(office):
    for i in range(2 * SEVERAL_NAMESPACES):
        office.cycle(office.info(namespace=f"ns-{i}"), 2 * LEAST_SECONDS)
        if i % 2:
            office.cycle(office.info(namespace="quiet"), 0.001)

    office.clock.seconds += LONGEST_PAUSE_SECONDS
    assert LEAST_SECONDS == office.budgets.begin(office.info(namespace="quiet"), 0).limit_seconds


def test_one_namespace_cannot_raise_the_budget(office):
    for i in range(10 * SEVERAL_NAMESPACES):
        office.cycle(office.info(f"p{i}"), 3 * LEAST_SECONDS)

    office.clock.seconds += LONGEST_PAUSE_SECONDS
    assert LEAST_SECONDS == office.budgets.begin(office.info(namespace="quiet"), 0).limit_seconds


def test_pods_that_were_held_back_for_the_budget_are_released(office):
    for i in range(SEVERAL_NAMESPACES):
        office.cycle(office.info(namespace=f"ns-{i}"), 2 * LEAST_SECONDS)

    assert [{f"ns-{i}" for i in range(SEVERAL_NAMESPACES)}] == office.released


@reports("over-budget", log="`placed pods took more than a cycle's budget`, with their namespace")
def test_work_that_placed_pods_cause_is_owed_by_their_namespaces(office, caplog):
    info = office.info(namespace="quiet")
    meter = office.budgets.begin(info, 0)
    meter.resume()
    with meter.on_account_of({"hostile": 99, "small": 1}):
        office.clock.seconds += 10 * LEAST_SECONDS
        assert meter.worked("InterPodAffinity"), "others are due their turn, and the cycle goes on"
    meter.pause()
    office.budgets.hold(info)

    assert 0 == meter.used_seconds
    assert 0 < office.budgets.debts.owed("hostile")
    assert [0, 0] == [office.budgets.debts.owed(each) for each in ("small", "quiet")]
    assert office.held(info) == 0
    assert "placed pods took more than a cycle's budget namespace=hostile pod=quiet/" in caplog.text
