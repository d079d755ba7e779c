"""What namespaces have and wait for, and whose turn that makes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_fair_share.shares import PPM, Shares

PROFILE = "default-scheduler"


@pytest.fixture
def shares():
    """The books of a cluster with 100 CPUs and 1000 bytes."""
    made = Shares()
    made.put_node("n0", {"cpu": 60, "memory": 500})
    made.put_node("n1", {"cpu": 40, "memory": 500})
    return made


def wait(shares, name, namespace="a", priority=0, **amounts):
    """The share of a new pod, in hundredths of the cluster."""
    pod = shares.wait(name, namespace, PROFILE, priority, amounts)
    return shares.share_of(pod) * 100 // PPM


def waiting(shares, namespace="a"):
    """The shares of all pods that wait there, by name."""
    return {pod.uid: share * 100 // PPM for pod, share in shares.shares(namespace)}


def test_pods_of_a_namespace_stand_behind_one_another(shares):
    """Each pod stands for what the namespace has with all that came before."""
    assert [10, 20, 30] == [wait(shares, f"p{i}", cpu=10) for i in range(3)]
    assert 10 == wait(shares, "other", "b", cpu=10)


def test_the_dominant_resource_counts(shares):
    """A namespace's share is the largest part that it has of any one resource."""
    assert 30 == wait(shares, "p", cpu=10, memory=300)
    assert 50 == wait(shares, "q", cpu=40, memory=100)


def test_placing_pods_changes_no_share(shares):
    """What waited before a pod, and is placed, still stands before it."""
    for number in range(3):
        wait(shares, f"p{number}", cpu=10)
    shares.changed.clear()
    shares.place("p0", "a", {"cpu": 10})
    shares.leave("p0")

    assert ({"p1": 20, "p2": 30}, set()) == (waiting(shares), shares.changed)


def test_an_end_brings_a_namespace_forward(shares):
    """Once a pod ended the others of its namespace stand for less."""
    shares.place("old", "a", {"cpu": 50})
    assert 60 == wait(shares, "p", cpu=10)
    shares.remove("old")

    assert ({"p": 10}, {"a"}) == (waiting(shares), shares.changed)


def test_a_failed_attempt_is_put_back(shares):
    """A pod that was assumed and is not placed after all stands where it stood."""
    for number in range(2):
        wait(shares, f"p{number}", cpu=10)
    shares.place("p0", "a", {"cpu": 10})
    shares.remove("p0")

    assert {"p0": 10, "p1": 20} == waiting(shares)


def test_a_pod_that_fits_nowhere_holds_back_none(shares):
    """Those behind it stand as if it were not there, and it stands for itself."""
    wait(shares, "huge", cpu=90)
    assert 100 == wait(shares, "small", cpu=10)
    shares.tried_in_vain("huge")

    assert {"huge": 90, "small": 10} == waiting(shares)
    assert 20 == wait(shares, "next", cpu=10)


def test_priorities_decide_within_a_namespace(shares):
    """A pod of higher priority stands before those that came first, which move behind it."""
    assert 10 == wait(shares, "low", cpu=10)
    assert 20 == wait(shares, "high", priority=5, cpu=20)

    assert ({"high": 20, "low": 30}, {"a"}) == (waiting(shares), shares.changed)


def test_a_pod_that_waits_already_keeps_its_turn(shares):
    """Asked about again as it is, it is the same pod; as another, it stands behind the rest."""
    wait(shares, "p", cpu=10)
    assert shares.wait("p", "a", PROFILE, 0, {"cpu": 10}) is None
    wait(shares, "q", cpu=10)

    assert 40 == wait(shares, "p", cpu=30)
    assert {"q": 10, "p": 40} == waiting(shares)


def test_the_cluster_grows(shares):
    """Shares are parts of what there is."""
    wait(shares, "p", cpu=50)
    shares.put_node("n2", {"cpu": 100})
    assert {"p": 25} == waiting(shares)
    shares.remove_node("n2")
    assert {"p": 50} == waiting(shares)


def test_another_profile_forgets_its_own(shares):
    """Only pods of that profile are dropped."""
    shares.wait("p", "a", "one", 0, {"cpu": 10})
    shares.wait("q", "a", "two", 0, {"cpu": 10})

    assert ["p"] == shares.leave_profile("one")
    assert {"q": 10} == waiting(shares)


AMOUNTS = st.integers(1, 9)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["wait", "place", "remove", "leave", "vain"]),
        st.integers(0, 7),
        st.sampled_from(["a", "b"]),
        AMOUNTS,
    ),
    max_size=60,
)


@given(actions=ACTIONS)
def test_the_sums_are_those_of_counting(actions):
    """Whatever happens in whatever order, the books hold what a count of all pods gives."""
    shares = Shares()
    shares.put_node("n0", {"cpu": 100})
    placed, present, vain, home = {}, {}, set(), {}
    for action, number, namespace, cpu in actions:
        uid = f"p{number}"
        where = home.setdefault(uid, namespace)
        if action == "wait" and uid not in present:
            shares.wait(uid, where, PROFILE, 0, {"cpu": cpu})
            present[uid] = cpu
            vain.discard(uid)
        elif action == "place":
            shares.place(uid, where, {"cpu": cpu})
            placed[uid] = cpu
        elif action == "remove":
            shares.remove(uid)
            placed.pop(uid, None)
        elif action == "leave":
            shares.leave(uid)
            present.pop(uid, None)
        elif action == "vain" and uid in present:
            shares.tried_in_vain(uid)
            vain.add(uid)
    for namespace in ("a", "b"):
        ahead = sum(cpu for uid, cpu in placed.items() if home[uid] == namespace)
        expected = {}
        for uid, cpu in present.items():
            if home[uid] == namespace and uid not in placed:
                expected[uid] = ahead + cpu
                ahead += 0 if uid in vain else cpu
        assert expected == waiting(shares, namespace)


def test_nothing_is_kept_of_who_is_gone(shares):
    """A namespace that has and wants nothing is not in the books."""
    for number in range(50):
        wait(shares, f"p{number}", f"ns{number}", priority=number, cpu=1)
        shares.place(f"p{number}", f"ns{number}", {"cpu": 1})
        shares.leave(f"p{number}")
        shares.remove(f"p{number}")

    assert ({}, set()) == (shares.used(), shares.changed)
