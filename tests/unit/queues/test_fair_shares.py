"""Fair shares: what each queue of a tree would have, against their definition and by examples."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_queues.fair_shares import fair_shares
from berth_queues.filling import Claim, fill
from berth_queues.tree import QueueSpec, Tree
from tests.exact_shares import ExactShares
from tests.random_queues import UNIT, arrive, random_tree


def tree(*specs, offered=None):
    return Tree({spec.name: spec for spec in specs}, offered or {})


def queue(name, parent="all", quota=None, **fields):
    return QueueSpec(name, parent, {} if quota is None else {"cpu": quota}, **fields)


def shares(queues, **demand):
    """The shares of CPU by queue."""
    found = fair_shares(queues, {name: {"cpu": amount} for name, amount in demand.items()})
    return {name: round(share["cpu"], 6) for name, share in found.items() if name in demand}


ALL = QueueSpec("all", quota={"cpu": 12})


@pytest.mark.parametrize(
    ("queues", "demand", "expected"),
    [
        pytest.param((queue("a"), queue("b")), (20, 20), (6, 6), id="equal"),
        pytest.param((queue("a"), queue("b", weight=2)), (20, 20), (4, 8), id="by weight"),
        pytest.param((queue("a"), queue("b", weight=2)), (20, 3), (9, 3), id="what one leaves"),
        pytest.param((queue("a", priority=1), queue("b")), (10, 20), (10, 2), id="priority first"),
        pytest.param((queue("a", quota=6), queue("b")), (20, 20), (12, 6), id="quota first"),
        pytest.param((queue("a", quota=6, weight=0), queue("b")), (20, 20), (6, 12), id="weight of nothing"),
        pytest.param((queue("a", limit={"cpu": 2}), queue("b")), (20, 20), (2, 10), id="a limit"),
        pytest.param(
            (queue("a", quota=4, borrowing_limit={"cpu": 1}), queue("b")),
            (20, 20),
            (5, 11),
            id="may borrow 1",
        ),
        pytest.param(
            (queue("a", quota=4, lending_limit={"cpu": 1}), queue("b")), (0, 20), (0, 13), id="lends 1"
        ),
        pytest.param((queue("a", quota=6), queue("b")), (0, 20), (0, 18), id="lends all"),
    ],
)
def test_two_queues(queues, demand, expected):
    """Twelve cores of their parent, and their own quotas, are divided among two queues."""
    assert dict(zip("ab", expected, strict=True)) == shares(
        tree(ALL, *queues), **dict(zip("ab", demand, strict=True))
    )


def test_levels():
    """A level is divided before the next: three queues of one department have what one of the other has."""
    found = shares(
        tree(ALL, queue("x"), queue("y"), *(queue(name, "x") for name in "abc"), queue("d", "y")),
        a=20,
        b=20,
        c=20,
        d=20,
    )

    assert {"a": 2, "b": 2, "c": 2, "d": 6} == found


def test_the_nodes_of_a_root():
    """A root that owns the nodes divides what they offer, and quotas come first."""
    queues = tree(
        QueueSpec("all", owns_nodes=True), queue("a", quota=6), queue("b"), offered={"cpu": 10, "gpu": 4}
    )

    assert {"a": 8, "b": 2} == shares(queues, a=20, b=20)


def test_what_is_kept_of_the_nodes():
    """What a queue does not lend is no part of what the others divide, nor is it there twice."""
    kept = queue("a", quota=6, lending_limit={"cpu": 2})
    queues = tree(QueueSpec("all", owns_nodes=True), kept, queue("b"), offered={"cpu": 10})

    assert {"a": 0, "b": 6} == shares(queues, a=0, b=20)
    assert {"a": 8, "b": 2} == shares(queues, a=20, b=20)
    assert (10, 6) == tuple(queues.queues[name].available("cpu") for name in "ab")


@given(seed=st.integers(0, 10**6))
def test_against_linear_programs(seed):
    """At each steady state all shares are those of the linear programs that define them."""
    random, demand = Random(seed), {}
    specs = random_tree(random)
    for _ in range(2):
        arrive(random, specs, demand)
        found = fair_shares(Tree(specs), {name: {"cpu": amount} for name, amount in demand.items()})
        for name, share in ExactShares(specs, "cpu", demand).solve().items():
            assert share == pytest.approx(found[name].get("cpu", 0.0), abs=UNIT / 1000)


CLAIMS = st.builds(
    Claim,
    st.integers(0, 100),
    st.integers(0, 200),
    st.sampled_from((0.0, 0.5, 1.0, 3.0)),
    st.integers(0, 2),
)


@given(st.integers(0, 500), st.lists(CLAIMS, min_size=1, max_size=12))
def test_all_is_divided(amount, claims):
    """No claimant gets more than its limit, and nothing is left while one that may have more wants it."""
    parts = fill(amount, claims)

    assert all(0 <= part <= claim.limit + 1e-6 for part, claim in zip(parts, claims, strict=True))
    assert sum(parts) <= amount + 1e-6
    if sum(parts) < amount - 1e-6:
        assert all(
            part >= min(claim.limit, claim.guaranteed if not claim.weight else claim.limit) - 1e-6
            for part, claim in zip(parts, claims, strict=True)
        )


@given(st.integers(0, 500), st.lists(CLAIMS, min_size=2, max_size=8), st.integers(0, 100))
def test_more_for_all(amount, claims, more):
    """No claimant has less where there is more to divide."""
    pairs = zip(fill(amount, claims), fill(amount + more, claims), strict=True)

    assert all(after >= before - 1e-6 for before, after in pairs)
