"""What the checker takes a pod's needs to be: quantities, and their sum over containers."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.demo.checker.quantity import UnreadableError, as_text, exactly
from berth.demo.checker.requests import pod_requests

GI = 1024**3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (Fraction(1, 10), "100m"),
        (Fraction(1, 2), ".5"),
        (5, "5."),
        (-2, "-2"),
        (2000, "2e3"),
        (2000, "2E3"),
        (Fraction(1, 100), "1e-2"),
        (Fraction(3, 2) * GI, "1.5Gi"),
        *((1024**power, f"1{suffix}i") for power, suffix in enumerate("KMGTPE", start=1)),
        *((1000**power, f"1{suffix}") for power, suffix in enumerate("kMGTPE", start=1)),
        *((Fraction(1, 1000**power), f"1{suffix}") for power, suffix in enumerate("mun", start=1)),
    ],
)
def test_quantity(value, text):
    """A quantity has its exact value."""
    assert value == exactly(text)


@pytest.mark.parametrize(
    "text", ["", "1 ", "1K", "1gi", "Gi", "1e", "1e3Gi", "0x1", "1_000", "1,5", "\u0661", "nan"]
)
def test_no_quantity(text):
    """Other text is refused."""
    with pytest.raises(UnreadableError):
        exactly(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=6))
def test_text_and_back(number):
    """A value written as text is the same value."""
    assert Fraction(number) == exactly(as_text(Fraction(Decimal(number))))


def container(name="c", cpu=None, memory=None, **more):
    requests = {"cpu": cpu, "memory": memory}
    return {"name": name, "resources": {"requests": {k: v for k, v in requests.items() if v}}, **more}


def sidecar(**amounts):
    return container("s", restartPolicy="Always", **amounts)


GROWN = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "4"}}
RESIZED = {"name": "c", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "1"}}
DEFERRED = {"type": "PodResizePending", "reason": "Deferred"}
INFEASIBLE = {"type": "PodResizePending", "reason": "Infeasible"}


@pytest.mark.parametrize(
    ("expected", "spec", "status"),
    [
        pytest.param({}, {"containers": [{"name": "c"}]}, {}, id="nothing"),
        pytest.param(
            {"cpu": 3, "memory": 3 * GI},
            {
                "containers": [container("a", "2", "1Gi"), container("b", "1", "1Gi")],
                "initContainers": [container("i", "2", "1Gi"), container("j", "2", "3Gi")],
            },
            {},
            id="init containers run one at a time",
        ),
        pytest.param(
            {"cpu": 5},
            {
                "containers": [container(cpu="1")],
                "initContainers": [sidecar(cpu="2"), container("i", "3")],
            },
            {},
            id="a sidecar runs beside later init containers",
        ),
        pytest.param(
            {"cpu": 3},
            {
                "containers": [container(cpu="1")],
                "initContainers": [container("i", "3"), sidecar(cpu="2")],
            },
            {},
            id="a sidecar does not run beside earlier ones",
        ),
        pytest.param(
            {"cpu": 5},
            {"containers": [container("a", "1"), container("b", "2")], "initContainers": [sidecar(cpu="2")]},
            {},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {"cpu": Fraction(41, 10)},
            {
                "containers": [container(cpu="1")],
                "resources": {"requests": {"cpu": "4"}},
                "overhead": {"cpu": "100m"},
            },
            {},
            id="pod level, then overhead",
        ),
        pytest.param(
            {"cpu": 1, "memory": 3 * GI},
            {"containers": [container(cpu="1", memory="1Gi")], "resources": {"requests": {"memory": "3Gi"}}},
            {},
            id="pod level, one resource",
        ),
        pytest.param(
            {"cpu": 1},
            {"containers": [container(cpu="1")], "resources": {"requests": {"example.com/x": "3"}}},
            {},
            id="pod level, not for extended resources",
        ),
        pytest.param(
            {"cpu": 1, "example.com/x": 2},
            {
                "containers": [
                    {
                        "name": "c",
                        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3", "example.com/x": 2}},
                    }
                ]
            },
            {},
            id="a limit alone is a request",
        ),
        pytest.param(
            {"cpu": 2},
            {"containers": [container(cpu="1")]},
            {"containerStatuses": [RESIZED]},
            id="resize down",
        ),
        pytest.param(
            {"cpu": 2},
            {"containers": [container(cpu="3")]},
            {"containerStatuses": [RESIZED], "conditions": [INFEASIBLE]},
            id="resize that cannot be",
        ),
        pytest.param(
            {"cpu": 3},
            {"containers": [container(cpu="3")]},
            {"containerStatuses": [RESIZED], "conditions": [DEFERRED]},
            id="resize that waits",
        ),
        pytest.param(
            {"cpu": 3},
            {"containers": [container(cpu="3")]},
            {"containerStatuses": [RESIZED], "conditions": [DEFERRED, INFEASIBLE]},
            id="the first condition counts",
        ),
        pytest.param(
            {"cpu": 4},
            {"containers": [container(cpu="3")]},
            {"containerStatuses": [{"name": "c", **GROWN}]},
            id="allotted, not yet actual",
        ),
        pytest.param(
            {"cpu": 4},
            {"containers": [container(cpu="5")]},
            {"containerStatuses": [{"name": "c", **GROWN}], "conditions": [INFEASIBLE]},
            id="allotted, then infeasible",
        ),
        pytest.param(
            {"cpu": 5},
            {"containers": [container(cpu="1")], "initContainers": [sidecar(cpu="2")]},
            {"initContainerStatuses": [{"name": "s", **GROWN}]},
            id="a sidecar is resized",
        ),
        pytest.param(
            {"cpu": 2},
            {"containers": [container(cpu="1")], "initContainers": [container("i", "2")]},
            {"initContainerStatuses": [{"name": "i", **GROWN}]},
            id="an ordinary init container is not",
        ),
        pytest.param(
            {"cpu": 4},
            {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}},
            GROWN,
            id="resize at the pod's level",
        ),
    ],
)
def test_pod_requests(expected, spec, status):
    """A pod takes what its containers take at their worst moment."""
    assert expected == pod_requests({"spec": spec, "status": status})
