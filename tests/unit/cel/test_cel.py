"""Expressions over devices: cel-spec's rules and Kubernetes' extensions."""

from itertools import pairwise

import pytest

from berth.cel import CELError, program
from berth.cel.errors import SyntaxProblemError
from berth.objects.devices.devices import DeviceAttribute, DeviceCapacity, DeviceSpec
from berth.plugins.dynamic_resources.device_values import device_variable

DEVICE = DeviceSpec(
    name="gpu-0",
    attributes={
        "model": DeviceAttribute(string="a100"),
        "index": DeviceAttribute(integer=3),
        "healthy": DeviceAttribute(boolean=True),
        "firmware": DeviceAttribute(version="1.10.2-rc.1"),
        "vendor.example/family": DeviceAttribute(string="ampere"),
    },
    capacity={"memory": DeviceCapacity("40Gi")},
)
VARIABLES = {"device": device_variable("gpu.example", DEVICE)}


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example"',
        'device.attributes["gpu.example"].model == "a100"',
        'device.attributes["vendor.example"].family.startsWith("amp")',
        'device.attributes["gpu.example"].index in [1, 2, 3]',
        'device.attributes["gpu.example"].healthy && !has(device.attributes["other"].x)',
        'device.attributes["gpu.example"].firmware.isLessThan(semver("1.10.2"))',
        'device.attributes["gpu.example"].firmware.isGreaterThan(semver("v1.9", true))',
        'device.attributes["gpu.example"].firmware.minor() == 10',
        'device.capacity["gpu.example"].memory.compareTo(quantity("40Gi")) == 0',
        'device.capacity["gpu.example"].memory.isGreaterThan(quantity("39.5Gi"))',
        'quantity("1k").add(quantity("24")).asInteger() == 1024',
        'quantity("40Gi").sub(1).isLessThan(quantity("40Gi"))',
        'device.attributes["gpu.example"].?missing.orValue("none") == "none"',
        'device.attributes[?"gpu.example"].?model == optional.of("a100")',
        'cel.bind(g, device.attributes["gpu.example"], g.index > 2 && g.index < 4)',
        'device.attributes["gpu.example"].model.upperAscii().matches("^A[0-9]+$")',
        '["a", "b"].exists(x, x == "b") && [1, 2].all(x, x > 0) && [1, 2].exists_one(x, x == 1)',
        '{"a": 1, "b": 2}.all(k, v, k != "" && v > 0)',
        "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]",
        "sets.intersects([1, 2], [2, 3]) && [3, 1].max() == 3 && [1, 2].isSorted()",
        "1 == 1u && 1 == 1.0 && -7 / 2 == -3 && -7 % 2 == -1",
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "(1 > 2 ? 'no' : 'yes') == \"yes\"",
        r"'\x41' == 'A' && r'\d' == '\\d' && 0xff == 255",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b'",
        "-9223372036854775808 < 0",
        "isQuantity('1Gi') && !isQuantity('x') && isSemver('1.2.3') && !isSemver('1.2')",
        "[[1, 2], [3]].map(x, x.size()) == [2, 1] // a comment",
    ],
)
def test_holds(expression):
    assert program(expression)(VARIABLES) is True


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["gpu.example"].missing == "x"',
        'device.attributes["nowhere"].model == "x"',
        "1 + 'a' == 'a'",
        "9223372036854775807 + 1 > 0",
        "1 / 0 == 1",
        "1 / 0 == 1 && true",
        "quantity('abc') == quantity('1')",
        "[1][2] == 1",
        "unknown == 1",
        "1 < 'a'",
    ],
)
def test_fails_on_the_device(expression):
    with pytest.raises(CELError):
        program(expression)(VARIABLES)


@pytest.mark.parametrize(
    "expression", ["1 +", "device.driver ==", "'open", "foo(1)", "'a'.bar()", "9223372036854775808 > 0", "(1"]
)
def test_does_not_parse(expression):
    with pytest.raises(SyntaxProblemError):
        program(expression)


def test_versions_are_ordered_as_semver_says():
    """A release comes after its pre-releases, whose numbers are compared as numbers."""
    ordered = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-rc.2",
        "1.0.0-rc.11",
        "1.0.0",
        "1.0.1",
    ]
    pairs = pairwise(ordered)

    assert all(program(f"semver('{a}').isLessThan(semver('{b}'))")({}) for a, b in pairs)
