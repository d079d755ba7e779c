"""Attributes that a request derives from what a device has, and constraints by them (KEP-6080)."""

import pytest

from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    Cluster,
    claiming,
    device,
    make_claim,
    make_slice,
    request,
)

GATES = {"DRADerivedAttributes": True}
NUMBER = f'device.attributes["{DRIVER}"].number'


def numbered(*numbers):
    """Devices a, b, ... with these numbers."""
    devices = [
        device(name, attributes={} if number is None else {"number": {"int": number}})
        for name, number in zip("abcd", numbers, strict=False)
    ]
    return make_slice("s0", devices)


def asking(expression, constraint="matchAttribute", count=2, name="example.com/half", **more):
    """A claim for devices that agree, or differ, in what the expression makes of them."""
    derived = [{"name": name, "expression": expression}]
    wanted = [request(count=count, derivedAttributes=derived, **more)]
    return make_claim(requests=wanted, constraints=[{constraint: name, "requests": ["r0"]}])


def cluster(slices, claim, **gates):
    return Cluster(nodes=("n0",), slices=[slices], claims=[claim], gates=GATES | gates, release=(1, 37))


def picked(here):
    return "".join(name for _, _, name in here.reserved(claiming("c0"), "n0"))


@pytest.mark.parametrize(
    ("expression", "devices"),
    [
        pytest.param(f"{NUMBER} / 2", "bc", id="int"),
        pytest.param(f"{NUMBER} > 3", "ab", id="bool"),
        pytest.param(f"string({NUMBER} % 3)", "ad", id="string"),
        pytest.param(f"semver(string({NUMBER} / 2) + '.0.0')", "bc", id="version"),
    ],
)
def test_devices_match_by_what_is_derived(expression, devices):
    """Of the numbers 1, 2, 3 and 4: those for which the expression gives one value."""
    assert devices == picked(cluster(numbered(1, 2, 3, 4), asking(expression)))


def test_devices_differ_by_what_is_derived():
    """The first two whose halves are two numbers."""
    claim = asking(f"{NUMBER} / 2", constraint="distinctAttribute")

    assert "ac" == picked(cluster(numbered(2, 3, 4), claim))


def test_a_derived_attribute_goes_before_that_of_the_device():
    """By one name, the request's own is meant."""
    claim = asking("'all alike'", name=f"{DRIVER}/number")

    assert "ab" == picked(cluster(numbered(1, 2), claim))
    assert [] == cluster(numbered(1, 2), claim, DRADerivedAttributes=False).fits(claiming("c0"))


def test_a_list_has_all_of_its_values():
    """With DRAListTypeAttributes; without it there is nothing to compare, as with devices' lists."""
    claim = asking(f"[{NUMBER}, {NUMBER} + 1]")

    assert "ab" == picked(cluster(numbered(1, 2), claim, DRAListTypeAttributes=True))
    assert [] == cluster(numbered(1, 2), claim).fits(claiming("c0"))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param(NUMBER, "CEL runtime error: no such key: number", id="fails on the device"),
        pytest.param(
            "{'a': 1}",
            "must evaluate to string, int, bool, semver or a list of these",
            id="is no attribute",
        ),
    ],
)
def test_an_expression_that_fails_ends_the_attempt(expression, words):
    """Whatever else there is, for a device that the selectors let pass; the error names the attribute."""
    here = cluster(numbered(None, 1, 1), asking(expression, count=1))
    assert here.pre_filter(claiming("c0")).ok
    status = here.plugin.filter_status(here.state, here.codes(claiming("c0")).tolist()[0])

    assert not status.rejected
    assert "derived attribute example.com/half" in status.message
    assert words in status.message


def test_only_devices_that_are_selected_are_looked_at():
    """A selector before it keeps the expression from devices that it would fail on."""
    selectors = [{"cel": {"expression": f'"number" in device.attributes["{DRIVER}"]'}}]
    claim = asking(NUMBER, selectors=selectors)

    assert "bc" == picked(cluster(numbered(None, 1, 1), claim))


def test_long_values_are_compared_and_not_remembered():
    """What a user's expression gives takes no memory for long; two devices agree in it all the same."""
    here = cluster(numbered(1, 1), asking(f"string({NUMBER}) + '{'x' * 100}'"))

    assert "ab" == picked(here)
    kinds = here.plugin._supply.inventory.kinds.values()
    assert [{}] == [kind._derived for kind in kinds]
