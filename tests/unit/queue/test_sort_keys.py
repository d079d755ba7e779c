"""Keys that a sidecar gives to pods, and the order that they make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.interface import KeyedQueueSortPlugin
from berth.framework.queueing.queued_pod import KEY_PARTS, NO_KEY, QueuedPodInfo
from berth.framework.status import SUCCESS
from berth.plugins.priority_sort import priority_order
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.testing.handles import ManualClock
from tests.fakes import Steps
from tests.unit.queue.kit import PROFILE, CountingMetrics, Gates, a_pod
from tests.unit.queue.test_asked_sidecars import FarGate


class Sorter(KeyedQueueSortPlugin):
    """Orders by keys that a test gives, now or later."""

    in_process = False

    def __init__(self, steps):
        self._steps = steps
        self.at_once = None
        self.asked, self.gone = [], []

    @property
    def name(self):
        return "Fair"

    def less(self, a, b):
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, info):
        return info.sort_key, *priority_order(info)

    async def key_of(self, pod):
        if self.at_once is not None:
            return self.at_once(pod)
        later = self._steps.outcome()
        self.asked.append((pod, later))
        return await later

    def left(self, uid):
        self.gone.append(uid)


class Keyed:
    """A queue that such a plugin orders."""

    def __init__(self, gates=()):
        self.clock = ManualClock(1000.0)
        self.steps = Steps(self.clock)
        self.sorter = Sorter(self.steps)
        self.gates = [gate(self.steps) for gate in gates]
        self.queue = SchedulingQueue(
            self.sorter.less,
            {PROFILE: QueueProfile(self.gates, sorter=self.sorter)},
            self.clock,
            pod_lister=lambda _namespace, _name: None,
            sort_key=self.sorter.sort_key,
            metrics=CountingMetrics(),
            background=self.steps,
        )

    def add(self, name, *key, **fields):
        """A pod whose key is known at once, if one is given."""
        pod = a_pod(name, uid=f"uid-{name}", **fields)
        if key:
            self.sorter.at_once = lambda _pod: a_key(*key)
        self.queue.add(pod)
        self.steps.run()
        self.sorter.at_once = None
        return pod

    def change(self, **keys):
        """The plugin changes its mind about pods by name."""
        return self.queue.take_sort_keys({f"uid-{name}": a_key(key) for name, key in keys.items()})

    def ready(self):
        """The names of pods that can be popped, in order."""
        names = []
        while (record := self.queue.pop()) is not None:
            names.append(record.pod.name)
        return names


def a_key(*parts):
    return (*parts, *NO_KEY[len(parts) :])


@pytest.fixture
def keyed():
    made = Keyed()
    yield made
    made.steps.close()


def test_pods_are_popped_by_their_keys(keyed):
    """The lowest key is first; priority and time decide among equal ones."""
    keyed.add("far", 5, priority=9)
    keyed.add("low", 3, priority=1)
    keyed.add("high", 3, priority=2)
    keyed.add("near", -1)

    assert ["near", "high", "low", "far"] == keyed.ready()


def test_a_pod_waits_for_its_key(keyed):
    """Until the plugin has answered nothing schedules the pod in a place that it may not have."""
    keyed.add("p")
    assert [] == keyed.ready()
    assert "Fair" == keyed.queue.record("default", "p").gating_plugin

    keyed.sorter.asked[0][1].set(a_key(7))
    keyed.steps.run()
    record = keyed.queue.pop()
    assert ("p", a_key(7), False) == (record.pod.name, record.sort_key, record.gated)


def test_another_version_of_a_pod_is_asked_about(keyed):
    """A queued pod with other labels waits for the key of what it is now."""
    old = keyed.add("p", 7)
    keyed.queue.update(old, a_pod("p", uid="uid-p", labels={"team": "red"}))
    keyed.steps.run()
    assert [] == keyed.ready()

    keyed.sorter.asked[0][1].set(a_key(1))
    keyed.steps.run()
    assert a_key(1) == keyed.queue.pop().sort_key


def test_the_same_pod_is_asked_about_once(keyed):
    """A pod that comes back after an attempt has its key."""
    pod = keyed.add("p", 7)
    record = keyed.queue.pop()
    record.unschedulable_plugins = {"A"}
    keyed.queue.add_unschedulable_if_not_present(record)
    keyed.queue.activate([pod])

    assert (["p"], []) == (keyed.ready(), keyed.sorter.asked)


def test_gates_come_before_the_key():
    """A pod that may not be queued needs no place; one that may is asked about once it may."""
    keyed = Keyed([FarGate])
    keyed.add("p")
    assert [] == keyed.sorter.asked

    keyed.gates[0].answers[0].set(SUCCESS)
    keyed.steps.run()
    assert (1, 1) == (len(keyed.sorter.asked), keyed.gates[0].asked)
    keyed.sorter.asked[0][1].set(NO_KEY)
    keyed.steps.run()
    assert (["p"], 1) == (keyed.ready(), keyed.gates[0].asked)
    keyed.steps.close()


def test_a_pod_that_changes_after_its_gates_is_asked_about_by_them_again():
    """What gates said of an older version lets no newer one pass."""
    keyed = Keyed([FarGate])
    old = keyed.add("p")
    keyed.gates[0].answers[0].set(SUCCESS)
    keyed.steps.run()
    keyed.queue.update(old, a_pod("p", uid="uid-p", labels={"team": "red"}))
    keyed.sorter.asked[0][1].set(NO_KEY)
    keyed.steps.run()

    assert ([], 2) == (keyed.ready(), keyed.gates[0].asked)
    keyed.steps.close()


def test_keys_change_while_pods_wait(keyed):
    """A pod moves to its new place in activeQ; an unknown one is counted."""
    for number, name in enumerate(("a", "b", "c")):
        keyed.add(name, number)
    unknown = keyed.change(a=9, c=-9, stranger=1)

    assert (1, ["c", "b", "a"]) == (unknown, keyed.ready())


def test_keys_change_while_a_pod_is_in_flight(keyed):
    """The pod has its new place when it comes back."""
    keyed.add("a", 1)
    record = keyed.queue.pop()
    assert 0 == keyed.change(a=5)
    keyed.queue.add_unschedulable_if_not_present(record)
    keyed.clock.seconds += 60
    keyed.add("b", 2)

    keyed.queue.flush()
    assert ["b", "a"] == keyed.ready()


def test_keys_order_pods_that_back_off(keyed):
    """Among pods whose backoff ends in the same second the one with the lowest key is taken first."""
    for name in ("a", "b"):
        keyed.add(name, 1)
    for record in (keyed.queue.pop(), keyed.queue.pop()):
        record.unschedulable_plugins = {"A"}
        keyed.queue._sub_queues.backoff.put(record.pod.key, record)
        keyed.queue.done(record.pod.uid)
    keyed.change(a=5, b=4)

    assert ["b", "a"] == keyed.ready()


def test_the_plugin_hears_who_left(keyed):
    """The plugin is given pods that were deleted or bound, and its keys for them count no more."""
    pod = keyed.add("p", 1)
    keyed.queue.delete(pod)

    assert (["uid-p"], 1) == (keyed.sorter.gone, keyed.change(p=2))


def test_without_such_a_plugin_nothing_is_asked():
    """A queue in PrioritySort's order keeps no keys and knows no pods by UID."""
    queue = SchedulingQueue(
        lambda a, b: priority_order(a) < priority_order(b),
        {PROFILE: QueueProfile([Gates()])},
        ManualClock(1000.0),
        pod_lister=lambda _namespace, _name: None,
    )
    queue.add(a_pod("p", uid="u"))

    assert 1 == queue.take_sort_keys({"u": a_key(1)})
    assert NO_KEY == queue.pop().sort_key


KEYS = st.lists(st.integers(-3, 3), min_size=1, max_size=3).map(lambda parts: a_key(*parts))
POD = st.tuples(KEYS, st.integers(-2, 2))
CHANGES = st.lists(st.tuples(st.integers(0, 11), KEYS), max_size=30)


@given(pods=st.lists(POD, min_size=1, max_size=12), changes=CHANGES, taken=st.integers(0, 6))
def test_the_order_is_that_of_sorting(pods, changes, taken):
    """Whatever keys change in whatever order, pods come as sorting by their newest keys has it."""
    keyed = Keyed()
    expected = {}
    for number, (key, priority) in enumerate(pods):
        keyed.clock.seconds += 1
        pod = keyed.add(f"p{number}", *key, priority=priority)
        expected[pod.name] = [key, -priority, number]
    popped = [keyed.queue.pop().pod.name for _ in range(min(taken, len(pods)))]
    assert popped == sorted(expected, key=expected.get)[: len(popped)]
    for name in popped:
        del expected[name]
    for number, key in changes:
        keyed.queue.take_sort_keys({f"uid-p{number}": key})
        if f"p{number}" in expected:
            expected[f"p{number}"][0] = key

    assert sorted(expected, key=expected.get) == keyed.ready()
    keyed.steps.close()


@given(
    keys=st.lists(KEYS, min_size=3, max_size=3),
    priorities=st.lists(st.integers(0, 1), min_size=3, max_size=3),
)
def test_the_order_is_strict(keys, priorities):
    """No pod is before itself, and of two that differ one is before the other, transitively."""
    sorter = Sorter(None)
    a, b, c = (
        QueuedPodInfo(a_pod(f"p{i}", priority=priorities[i]), float(i), sort_key=keys[i]) for i in range(3)
    )

    assert not sorter.less(a, a)
    assert sorter.less(a, b) is not sorter.less(b, a)
    assert not (sorter.less(a, b) and sorter.less(b, c)) or sorter.less(a, c)


def test_a_key_has_all_its_parts():
    """Keys are compared part by part, so that all are of one length."""
    assert (KEY_PARTS,) * 2 == (len(NO_KEY), len(a_key(1, 2)))
