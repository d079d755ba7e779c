"""What queues have and wait for, and whose turn that makes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_queues.groups import GroupKey
from berth_queues.order import MAX_IN_VAIN, Order
from berth_queues.queue_objects import QueueObject, queue_name
from berth_queues.registry import Registry, namespace_queue
from berth_queues.tree import QueueSpec
from berth_queues.waiting import WaitingPod, WaitingPods

PROFILE = "default-scheduler"
PPM_PER_HUNDREDTH = 10_000


class Books:
    """The books of a cluster with 100 CPUs and 1000 bytes."""

    def __init__(self):
        self.registry, self.waiting = Registry(), WaitingPods()
        self.order = Order(self.registry, self.waiting)
        self.registry.offer({"cpu": 100, "memory": 1000})

    def queues(self, *specs):
        for name, parent, quota, weight in specs:
            above = queue_name(parent) if parent else ""
            spec = QueueSpec(queue_name(name), above, {"cpu": quota} if quota else {}, weight=weight)
            self.registry.objects.by_name[name] = QueueObject(spec, (name,), None)
        self.registry.changed()

    def wait(self, name, namespace="a", priority=0, group=None, **amounts):
        """The share of a new pod, in hundredths of the cluster."""
        queue = self.registry.name_of(namespace, {})
        pod = WaitingPod(name, namespace, queue, PROFILE, priority, 0, amounts, {}, group)
        self.waiting.put(pod)
        return self.order.last(pod)[-1] // PPM_PER_HUNDREDTH

    def place(self, name, namespace="a", **amounts):
        self.registry.use(self.registry.name_of(namespace, {}), amounts)
        self.waiting.placed(name)

    def remove(self, name, namespace="a", **amounts):
        self.registry.use(self.registry.name_of(namespace, {}), amounts, -1)
        self.waiting.removed(name)

    def shares(self, unit="Namespace a"):
        """The shares of all pods that wait there, by name, in their turn."""
        return {pod.uid: key[-1] // PPM_PER_HUNDREDTH for pod, key in self.order.keys(unit)}


@pytest.fixture
def books():
    return Books()


def test_pods_of_a_namespace_stand_behind_one_another(books):
    """Each pod stands for what the namespace has with all that came before."""
    assert [10, 20, 30] == [books.wait(f"p{i}", cpu=10) for i in range(3)]
    assert 10 == books.wait("other", "b", cpu=10)


def test_the_dominant_resource_counts(books):
    """A namespace's share is the largest part that it has of any one resource."""
    assert 30 == books.wait("p", cpu=10, memory=300)
    assert 50 == books.wait("q", cpu=40, memory=100)


def test_placing_pods_changes_no_share(books):
    """What waited before a pod, and is placed, still stands before it."""
    for number in range(3):
        books.wait(f"p{number}", cpu=10)
    books.waiting.changed.clear()
    books.place("p0", cpu=10)
    books.waiting.leave("p0")

    assert ({"p1": 20, "p2": 30}, set()) == (books.shares(), books.waiting.changed)


def test_a_failed_attempt_is_put_back(books):
    """A pod that was assumed and is not placed after all stands where it stood."""
    for number in range(2):
        books.wait(f"p{number}", cpu=10)
    books.place("p0", cpu=10)
    books.remove("p0", cpu=10)

    assert {"p0": 10, "p1": 20} == books.shares()


def test_a_pod_that_fits_nowhere_holds_back_none(books):
    """Those behind it stand as if it were not there, and it stands for itself."""
    books.wait("huge", cpu=90)
    assert 100 == books.wait("small", cpu=10)
    books.waiting.tried_in_vain("huge")

    assert {"huge": 90, "small": 10} == books.shares()
    assert 20 == books.wait("next", cpu=10)


def test_priorities_decide_within_a_queue(books):
    """A pod of higher priority stands before those that came first, which move behind it."""
    assert 10 == books.wait("low", cpu=10)
    assert 20 == books.wait("high", priority=5, cpu=20)

    assert ({"high": 20, "low": 30}, {"Namespace a"}) == (books.shares(), books.waiting.changed)


def test_a_pod_that_waits_already_keeps_its_turn(books):
    """Asked about again as it is, it is the same pod; as another, it stands behind the rest."""
    for name in "pqp":
        books.wait(name, cpu=10)
    assert {"p": 10, "q": 20} == books.shares()

    assert 40 == books.wait("p", cpu=30)
    assert {"q": 10, "p": 40} == books.shares()


def test_another_profile_forgets_its_own(books):
    """Only pods of that profile are dropped."""
    books.wait("p", cpu=10)
    books.waiting.put(WaitingPod("q", "a", namespace_queue("a"), "two", 0, 0, {"cpu": 10}))

    assert ["p"] == books.waiting.leave_profile(PROFILE)
    assert {"q": 10} == books.shares()


def test_a_group_stands_together(books):
    """The pods of a group stand at its first one's place, with what all of them want."""
    group = GroupKey("scheduling.x-k8s.io", "a", "gang")
    books.wait("g0", group=group, cpu=10)
    books.wait("single", cpu=10)
    books.wait("g1", group=group, cpu=20)

    assert {"g0": 30, "g1": 30, "single": 40} == books.shares()


def test_quota_goes_first(books):
    """A queue within its quota goes before one over it, whatever both have."""
    books.queues(("all", "", 0, 1), ("a", "all", 50, 1), ("b", "all", 0, 1))
    for number in range(3):
        books.wait(f"b{number}", "b", cpu=1)
        books.wait(f"a{number}", "a", cpu=20)

    assert ["a0", "a1", "b0", "b1", "b2", "a2"] == list(books.shares(queue_name("all")))


def test_levels(books):
    """Two departments take turns, and within one its teams do, by weight."""
    books.queues(("all", "", 0, 1), ("x", "all", 0, 1), ("y", "all", 0, 1))
    books.queues(("a", "x", 0, 1), ("b", "x", 0, 1), ("c", "y", 0, 1))
    for number in range(4):
        for team in "abc":
            books.wait(f"{team}{number}", team, cpu=10)
    order = list(books.shares(queue_name("all")))

    assert ["a0", "c0", "b0", "c1", "a1", "c2", "b1", "c3"] == order[:8]


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
    books = Books()
    placed, present, vain, home = {}, {}, set(), {}
    for action, number, namespace, cpu in actions:
        uid = f"p{number}"
        where = home.setdefault(uid, namespace)
        if action == "wait" and uid not in present and uid not in placed:
            books.wait(uid, where, cpu=cpu)
            present[uid] = cpu
            vain.discard(uid)
        elif action == "place" and uid not in placed:
            books.place(uid, where, cpu=cpu)
            placed[uid] = cpu
        elif action == "remove" and uid in placed:
            books.remove(uid, where, cpu=placed.pop(uid))
        elif action == "leave":
            books.waiting.leave(uid)
            present.pop(uid, None)
        elif action == "vain" and uid in present:
            books.waiting.tried_in_vain(uid)
            vain.add(uid)
    for namespace in ("a", "b"):
        ahead = sum(cpu for uid, cpu in placed.items() if home[uid] == namespace)
        expected = {}
        for uid, cpu in present.items():
            if home[uid] == namespace and uid not in placed:
                expected[uid] = ahead + cpu
                ahead += 0 if uid in vain else cpu
        assert expected == books.shares(namespace_queue(namespace))


def test_nothing_is_kept_of_who_is_gone(books):
    """A queue that has and wants nothing is not in the books."""
    for number in range(50):
        namespace = f"ns{number}"
        books.wait(f"p{number}", namespace, priority=number, cpu=1)
        books.place(f"p{number}", namespace, cpu=1)
        books.waiting.leave(f"p{number}")
        books.remove(f"p{number}", namespace, cpu=1)

    assert ({}, {}, {}) == (books.registry.own, dict(books.waiting.lines), books.waiting.by_uid)


def refused(books, *names):
    """Let pods be tried in vain because their queue has no room for them."""
    for attempt, name in enumerate(names):
        books.waiting.tried(name, attempt, refused=True)
        books.waiting.tried_in_vain(name)


def test_refused_pods_have_turns(books):
    """The most important first, then the oldest; those of a kind that is left out not at all."""
    books.queues(("root", "", 0, 1.0), ("a", "root", 10, 1.0))
    for name, priority, cpu in (("p", 0, 5), ("q", 1, 7), ("r", 1, 5), ("s", 1, 7)):
        books.wait(name, priority=priority, cpu=cpu)
    refused(books, "p", "q", "r", "s")
    left_out = set()
    turns = books.order.refused(queue_name("root"), left_out)
    first = next(turns).pods
    left_out.add(first[0].kind)

    assert ["q"] == [pod.uid for pod in first]
    assert [["r"], ["p"]] == [[pod.uid for pod in turn.pods] for turn in turns]


def test_how_many_refused_pods_are_looked_at(books):
    """However many pods of one queue differ, a removal costs the others no more than a bound."""
    books.queues(("root", "", 0, 1.0), ("a", "root", 10, 1.0))
    names = [f"p{i}" for i in range(MAX_IN_VAIN + 10)]
    for number, name in enumerate(names):
        books.wait(name, cpu=number + 11)
    refused(books, *names)

    assert MAX_IN_VAIN == len(list(books.order.refused(queue_name("root"), ())))
