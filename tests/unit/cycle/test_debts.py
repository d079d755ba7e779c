"""What namespaces owe ends with its causes, once; who owes it, whatever is tried in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from berth.cycle.budgets import LEAST_SECONDS, MAX_SECONDS, SEVERAL_NAMESPACES, CycleBudgets, named_by
from berth.cycle.debts import FOR_CPU, MAX_CAUSES, MAX_DEBTORS, PAUSE_FOR_CPU, PLACED_PODS, Debts
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.testing.builders import make_pod
from berth.testing.handles import ManualClock, Unstarted
from tests.hostile.growth_rows.row import decoded, thing
from tests.hostile.whole_core import WholeCore, pod_document

CPU = 0.3
LITTLE = 0.001
"""Within any budget."""
NAMESPACES = ["a", "b", "c", "d", "e"]


def owing(*causes, namespace="a"):
    """A namespace that owes for these."""
    debts = Debts(ManualClock(1000.0))
    for cause in causes:
        debts.charge(namespace, CPU, {cause: frozenset()})
    return debts


def test_a_debt_ends_with_the_last_of_its_causes():
    debts = owing("p0", "p1")

    assert [False, True] == [debts.cause_gone("a", cause) for cause in ("p0", "p1")]
    assert debts.owed("a") <= PAUSE_FOR_CPU * CPU


def test_a_pause_is_kept_to_whatever_is_gone():
    """Else a pod that is made anew again and again would have a turn each time."""
    debts = owing("p0")
    before = debts.wait_seconds("a")
    debts.cause_gone("a", "p0")

    assert 0 < before <= debts.wait_seconds("a")


def test_a_namespace_that_goes_over_again_owes_what_was_left_and_pays_to_the_end():
    debts = owing("p0")
    debts.cause_gone("a", "p0")
    debts.charge("a", CPU, {"p1": frozenset()})

    assert not debts.cause_gone("a", "p1")
    assert 2 * FOR_CPU * CPU == debts.owed("a")


def test_a_debt_that_would_be_paid_by_now_is_forgotten():
    debts = owing("p0")
    debts.cause_gone("a", "p0")
    debts._clock.seconds += FOR_CPU * CPU + 1
    debts.charge("a", CPU, {"p1": frozenset()})

    assert FOR_CPU * CPU == debts.owed("a")
    assert debts.cause_gone("a", "p1")


def test_a_debt_ends_with_the_claims_of_its_causes():
    """Of a pod that two claims made long, any of them; other claims end nothing."""
    debts = Debts(ManualClock(1000.0))
    debts.charge("a", CPU, {"p0": {"a/c0", "a/c1"}, "p1": {"a/c2"}})

    assert [False, False, True] == [debts.claim_gone("a", key) for key in ("a/other", "a/c1", "a/c2")]


def test_other_pods_end_no_debt():
    debts = owing("p0")

    assert [False, False] == [debts.cause_gone(*each) for each in (("a", "p1"), ("b", "p0"))]
    assert debts.owed("a") == FOR_CPU * CPU


def test_a_debt_of_more_pods_than_are_kept_is_paid_to_the_end():
    debts = owing(*(f"p{i}" for i in range(MAX_CAUSES + 1)))

    assert not any(debts.cause_gone("a", f"p{i}") for i in range(MAX_CAUSES + 1))
    assert debts.owed("a")


def test_a_bounded_number_of_namespaces_owe():
    debts = Debts(ManualClock(1000.0))
    for number in range(MAX_DEBTORS + 50):
        debts.charge(f"ns{number}", CPU, {PLACED_PODS: frozenset()})

    assert len(debts) == MAX_DEBTORS == len(debts.of_placed_pods)


class Office:
    """Budgets, which namespaces' placed pods hold terms, and who was released."""

    def __init__(self):
        self.clock, self.held, self.released = ManualClock(1000.0), {}, []
        self.budgets = CycleBudgets(
            self.clock,
            Unstarted(),
            on_forgiven=self.released.append,
            terms_by_namespace=lambda: self.held,
        )

    def cycle(self, namespace, seconds, of_placed=None):
        """A cycle that works so long for a pod, and so long on account of others' placed pods."""
        info = QueuedPodInfo(make_pod(f"{namespace}-pod", namespace=namespace), self.clock.monotonic())
        meter = self.budgets.begin(info, 0)
        meter.resume()
        self.clock.seconds += seconds
        for owner, others in (of_placed or {}).items():
            with meter.on_account_of({owner: 1}):
                self.clock.seconds += others
        meter.pause()
        self.budgets.hold(info)
        return info


def test_what_is_owed_for_placed_pods_ends_with_their_terms():
    """Their owner's pods come back when the next pod of anyone is tried."""
    office = Office()
    office.held["a"] = 1000
    office.cycle("b", 0.001, {"a": 2 * LEAST_SECONDS})
    office.cycle("b", 0.001)
    before = office.budgets.debts.owed("a")
    del office.held["a"]
    office.cycle("b", 0.001)

    assert before > PAUSE_FOR_CPU * 2 * LEAST_SECONDS >= office.budgets.debts.owed("a")
    assert [{"a"}] == office.released


def test_the_pods_of_a_namespace_come_back_when_the_one_that_went_over_is_deleted():
    office = Office()
    info = office.cycle("a", 2 * LEAST_SECONDS)
    office.budgets.pod_gone(info.pod)

    assert [{"a"}] == office.released


def test_a_groups_debt_names_all_of_its_pods():
    """It does not end with the first one, as long as others of those are there that made it long together."""
    office = Office()
    infos = [QueuedPodInfo(make_pod(name, namespace="a"), office.clock.monotonic()) for name in "xyz"]
    meter = office.budgets.begin_group(infos, 0)
    meter.resume()
    office.clock.seconds += 2 * meter.limit_seconds
    meter.pause()
    office.budgets.settle(infos[0])
    after = []
    for info in infos:
        office.budgets.pod_gone(info.pod)
        after.append(len(office.released))

    assert [0, 0, 1] == after


def test_the_pods_of_a_namespace_come_back_when_the_claim_is_gone():
    """What made the pod's cycle long may be the claim's selectors: the pod stays, and is tried again."""
    core = WholeCore()
    pod = decoded(pod_document("p", resourceClaims=[{"name": "c", "resourceClaimName": "claim"}]))
    claim = decoded(thing("resource.k8s.io/v1", "ResourceClaim", "claim", spec={}))
    core.bring(claim)
    debts, causes = core.core.budgets.debts, {pod.uid: named_by(pod)}
    debts.charge("default", CPU, causes)
    before = debts.owed("default")
    core.take(claim)

    assert before > debts.owed("default")


CYCLES = st.lists(
    st.tuples(
        st.sampled_from(NAMESPACES),
        st.sampled_from([LITTLE, 0.1, 0.3, 1.0]),
        st.dictionaries(st.sampled_from(NAMESPACES), st.sampled_from([0.003, 0.1, 3.0]), max_size=2),
    ),
    max_size=12,
)


@given(cycles=CYCLES)
def test_who_pays(cycles):
    """Only those owe whose own pods went over, or whose placed pods caused more than a budget.

    No pod is held back for less, whatever others' placed pods had its cycle do.
    """
    office, guilty = Office(), set()
    for namespace, seconds, of_placed in cycles:
        if seconds > LEAST_SECONDS / 10:
            guilty.add(namespace)  # Within the usual budget, but maybe not within that of a debtor.
        guilty |= {owner for owner, others in of_placed.items() if others > LEAST_SECONDS / 100}
        before = office.budgets.debts.owed(namespace)
        info = office.cycle(namespace, seconds, of_placed)

        assert {each for each in NAMESPACES if office.budgets.debts.owed(each)} <= guilty
        if seconds == LITTLE:
            assert info.held_until is None
            assert namespace in of_placed or office.budgets.debts.owed(namespace) <= before


@given(first=st.integers(0, 4), seconds=st.floats(LEAST_SECONDS * 1.1, MAX_SECONDS * 2))
def test_a_budget_that_namespaces_exceed_in_a_row_rises_whoever_began(first, seconds):
    office = Office()
    namespaces = (NAMESPACES[first:] + NAMESPACES[:first])[:SEVERAL_NAMESPACES]
    limit = office.budgets.look("other", 0).limit_seconds
    for namespace in namespaces:
        office.cycle(namespace, seconds)

    assert office.budgets.look("other", 0).limit_seconds >= min(2 * limit, MAX_SECONDS) * 0.99
    assert [0] * SEVERAL_NAMESPACES == [office.budgets.debts.owed(each) for each in namespaces]
    assert [set(namespaces)] == office.released
