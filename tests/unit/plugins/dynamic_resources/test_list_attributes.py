"""Attributes of devices that are lists (gate DRAListTypeAttributes, KEP-5491)."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.config.releases.release import RELEASES
from tests.suite import examples
from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    Cluster,
    claiming,
    device,
    make_claim,
    make_slice,
    request,
)

ROOT = f"{DRIVER}/root"
ON = {"DRAListTypeAttributes": True}
law = settings(max_examples=examples(60), deadline=None)

one_value = st.sampled_from([{"int": 1}, {"int": 2}, {"string": "1"}, {"bool": True}])
several = st.one_of(
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(lambda values: {"ints": values}),
    st.lists(st.sampled_from(["1", "2"]), min_size=1, max_size=2).map(lambda values: {"strings": values}),
)
attributes = st.lists(one_value | several, min_size=1, max_size=5)


def placed(found, *, constraint, count=2, gates=None, release=RELEASES[-1], selector=""):
    """The node of the devices with these attributes, or none, for so many of them under that constraint."""
    devices = [device(f"d{i}", attributes={"root": values}) for i, values in enumerate(found)]
    selectors = [{"cel": {"expression": selector}}] if selector else []
    claim = make_claim(
        requests=[request(count=count, selectors=selectors)],
        constraints=[{constraint: ROOT}] if constraint else [],
    )
    cluster = Cluster(
        nodes=["n0"],
        slices=[make_slice("s0", devices)],
        claims=[claim],
        gates=ON if gates is None else gates,
        release=release,
    )
    return cluster.fits(claiming("c0"))


@pytest.mark.parametrize(
    ("found", "match", "distinct"),
    [
        pytest.param([{"ints": [1, 2]}, {"ints": [2, 3]}], True, False, id="one in common"),
        pytest.param([{"ints": [1, 2]}, {"ints": [3]}], False, True, id="none in common"),
        pytest.param([{"ints": [1, 2]}, {"int": 2}], True, False, id="a list and one value"),
        pytest.param([{"strings": ["1"]}, {"ints": [1]}], False, True, id="of two types"),
        pytest.param([{"bools": [True]}, {"int": 1}], False, True, id="true is no number"),
        pytest.param([{"versions": ["1.0.0", "2.0.0"]}, {"version": "2.0.0"}], True, False, id="versions"),
        pytest.param([{"string": "1.0.0"}, {"versions": ["1.0.0"]}], False, True, id="a version is no text"),
    ],
)
def test_devices_match_that_have_a_value_in_common(found, match, distinct):
    """And those are distinct that have none."""
    assert match == bool(placed(found, constraint="matchAttribute"))
    assert distinct == bool(placed(found, constraint="distinctAttribute"))


def test_all_devices_have_one_value_in_common():
    """Each pair of these has one, and all three have none."""
    pairwise = [{"ints": [1, 2]}, {"ints": [2, 3]}, {"ints": [3, 1]}]

    assert ["n0"] == placed(pairwise, constraint="matchAttribute")
    assert [] == placed(pairwise, constraint="matchAttribute", count=3)


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_device_that_was_let_go_holds_no_other(release):
    """The second device leads to a dead end (kubernetes/kubernetes#140325)."""
    found = [{"ints": [1, 2]}, {"ints": [1]}, {"ints": [2]}, {"ints": [2]}]

    assert ["n0"] == placed(found, constraint="matchAttribute", count=3, release=release)


@pytest.mark.parametrize("constraint", ["matchAttribute", "distinctAttribute"])
def test_without_the_gate_a_list_agrees_with_no_other_device(constraint):
    """It is none of the types that are compared; one device is no pair."""
    alike = [{"ints": [1]}, {"ints": [1]}]

    assert [] == placed(alike, constraint=constraint, gates={})
    assert ["n0"] == placed(alike, constraint=constraint, gates={}, count=1)


@pytest.mark.parametrize("gates", [{}, ON], ids=["off", "on"])
@pytest.mark.parametrize(
    ("found", "selector", "fits"),
    [
        ({"ints": [1, 2]}, "root.includes(2)", True),
        ({"int": 2}, "root.includes(2)", True),
        ({"ints": [1, 2]}, "root.includes('2')", False),
        ({"strings": ["a", "b"]}, "root.exists(x, x.startsWith('b'))", True),
        ({"versions": ["1.0.0"]}, "root.all(x, x.isLessThan(semver('2.0.0')))", True),
        ({"bools": [False]}, "root[0]", False),
    ],
    ids=str,
)
def test_selectors_see_lists(found, selector, fits, gates):
    """Whether the gate is on or off: the API server alone says what is stored."""
    expression = f'device.attributes["{DRIVER}"].{selector}'

    assert fits == bool(placed([found], constraint="", count=1, selector=expression, gates=gates))


@law
@given(found=attributes, count=st.integers(1, 4), match=st.booleans())
def test_the_search_is_complete(found, count, match):
    """A node fits exactly where some choice of its devices meets the constraint."""
    sets = [members(values) for values in found]
    possible = any(
        bool(frozenset.intersection(*chosen)) if match else not overlapping(chosen)
        for chosen in combinations(sets, count)
    )

    assert possible == bool(
        placed(found, constraint="matchAttribute" if match else "distinctAttribute", count=count)
    )


def members(values):
    """The values with their types."""
    ((kind, value),) = values.items()
    return frozenset((kind.removesuffix("s"), str(v)) for v in (value if kind.endswith("s") else [value]))


def overlapping(chosen):
    """Whether two of them have a value in common."""
    return any(first & second for first, second in combinations(chosen, 2))
