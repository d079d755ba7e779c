"""Quotas in a tree: what is borrowed, lent and kept, as pods come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_queues.decay import DecayedUse, adjusted_weights
from berth_queues.dominant import MAX_PPM, dominant_share
from berth_queues.tree import MAX_DEPTH, QueueSpec, Tree
from tests.random_queues import random_tree

CPU = "cpu"


def cpu(amount):
    return {CPU: amount}


def tree(*specs):
    return Tree({spec.name: spec for spec in specs})


def pair(**b):
    """A cohort of `a`, with a quota of 10, and `b`, with one of 6."""
    return tree(QueueSpec("cohort"), QueueSpec("a", "cohort", cpu(10)), QueueSpec("b", "cohort", cpu(6), **b))


@pytest.mark.parametrize(
    ("b", "used", "available"),
    [
        pytest.param({}, (0, 0), (16, 16), id="all is lent"),
        pytest.param({}, (12, 0), (4, 4), id="a borrows 2"),
        pytest.param({}, (16, 0), (0, 0), id="a borrows all"),
        pytest.param({"lending_limit": cpu(2)}, (0, 0), (12, 16), id="b lends 2"),
        pytest.param({"lending_limit": cpu(2)}, (12, 0), (0, 4), id="b keeps 4"),
        pytest.param({"lending_limit": cpu(2)}, (0, 5), (11, 11), id="b uses 1 of what it lends"),
        pytest.param({"borrowing_limit": cpu(3)}, (0, 0), (16, 9), id="b may borrow 3"),
        pytest.param({"borrowing_limit": cpu(3)}, (0, 8), (8, 1), id="b borrows 2 of 3"),
        pytest.param({"limit": cpu(4)}, (0, 3), (13, 1), id="a limit in all"),
    ],
)
def test_available(b, used, available):
    """What a queue may use more: its quota, what others lend, up to its own limits."""
    queues = pair(**b)
    for name, amount in zip("ab", used, strict=True):
        queues.queues[name].use(cpu(amount))

    assert available == tuple(queues.queues[name].available(CPU) for name in "ab")


def test_a_resource_without_quota():
    """Only a limit of its own bounds the use of a resource that no queue has a quota of."""
    queues = tree(QueueSpec("r", quota=cpu(4)), QueueSpec("a", "r", limit={"memory": 5}))

    assert (None, 5, 4) == tuple(queues.queues["a"].available(name) for name in ("gpu", "memory", CPU))


@pytest.mark.parametrize(
    ("specs", "left_out"),
    [
        pytest.param([("a", "b")], {"a"}, id="no parent"),
        pytest.param([("a", "b"), ("b", "a")], {"a", "b"}, id="a circle"),
        pytest.param([("a", "a")], {"a"}, id="its own parent"),
        pytest.param([("a", "b"), ("b", "c"), ("c", "b")], {"a", "b", "c"}, id="below a circle"),
        pytest.param(
            [("q0", "")] + [(f"q{i}", f"q{i - 1}") for i in range(1, MAX_DEPTH + 2)], {"q8", "q9"}, id="deep"
        ),
    ],
)
def test_what_is_no_tree(specs, left_out):
    """A queue that has no place in a tree is left out, with the reason, and no other one is."""
    queues = tree(*(QueueSpec(name, parent) for name, parent in specs))

    assert left_out == set(queues.errors)
    assert {name for name, _ in specs} - left_out == set(queues.queues)


@given(random=st.randoms(use_true_random=False))
def test_use_and_back(random):
    """Pods that were admitted keep all limits, and nothing is left of them once they have gone."""
    queues = Tree(random_tree(random))
    placed = []
    for _ in range(30):
        queue, amount = random.choice(list(queues.queues.values())), random.choice((250, 1000, 4000))
        room = queue.available(CPU)
        if room is None or room >= amount:
            queue.use(cpu(amount))
            placed.append((queue, amount))
    for each in queues.queues.values():
        most = each.most(CPU)
        assert most is None or each.used.get(CPU, 0) <= most
        assert each.parent or CPU not in each.subtree or each.used.get(CPU, 0) <= each.subtree[CPU]
    random.shuffle(placed)
    for queue, amount in placed:
        queue.use(cpu(amount), -1)
    assert not any(any(each.used.values()) for each in queues.queues.values())


@pytest.mark.parametrize(
    ("used", "quota", "weight", "expected"),
    [
        pytest.param({CPU: 5, "gpu": 1}, {}, 1.0, (500_000, 500_000), id="the largest part counts"),
        pytest.param({CPU: 5, "gpu": 1}, cpu(5), 1.0, (250_000, 500_000), id="within its quota of CPU"),
        pytest.param({CPU: 5}, {}, 2.0, (250_000, 250_000), id="by weight"),
        pytest.param({CPU: 5}, cpu(5), 0.0, (0, MAX_PPM), id="weight of nothing"),
        pytest.param({"other": 5}, {}, 1.0, (0, 0), id="none of it is there"),
    ],
)
def test_dominant_share(used, quota, weight, expected):
    """A queue's share is the largest part of any resource that it uses over its quota, by its weight."""
    assert expected == dominant_share(used, quota, {CPU: 10, "gpu": 4}, weight)


def test_half_life():
    """Use that began, or ended, one half-life ago counts as half of it."""
    use = DecayedUse(half_life=60.0)
    use.set(8.0, 0.0)
    assert 4.0 == pytest.approx(use.value(60.0))
    assert 6.0 == pytest.approx(use.value(120.0))
    use.set(0.0, 120.0)
    assert 3.0 == pytest.approx(use.value(180.0))


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e6)), max_size=8), st.floats(1, 1e4))
def test_decayed_use_has_bounds(changes, half_life):
    """It is never more than the most that was ever used, and looking at it changes nothing."""
    use, now = DecayedUse(half_life), 0.0
    for passed, amount in changes:
        now += passed
        use.value(now)
        use.set(amount, now)
    most = max((amount for _, amount in changes), default=0.0)

    assert -1e-6 <= use.value(now + 1.0) <= most * (1 + 1e-9) + 1e-6


def test_adjusted_weights():
    """Who used more than its weight's part has less weight, who used less has more; without use all stays."""
    weights = {"a": 1.0, "b": 1.0}

    assert weights == adjusted_weights(weights, {}, 1.0)
    assert {"a": 0.5, "b": 1.5} == adjusted_weights(weights, {"a": 3.0, "b": 1.0}, 1.0)
    assert {"a": 0.0, "b": 2.0} == adjusted_weights(weights, {"a": 9.0, "b": 0.0}, 1.0)
