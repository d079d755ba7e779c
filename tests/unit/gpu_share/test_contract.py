"""What pods ask for, and how nodes and pods say so."""

import msgspec
import pytest

from berth_gpu_share.contract import (
    COUNT,
    DEVICES,
    MEMORY,
    MILLI,
    RESOURCE,
    Demand,
    DemandError,
    assigned_to,
    demand_of,
    devices_of,
)
from berth_sdk.objects import decode_node, decode_pod
from berth_sdk.testing import make_node, make_pod
from tests.unit.gpu_share.builders import gpu_node, gpu_pod


def pod(document):
    return decode_pod(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("document", "demand"),
    [
        pytest.param(make_pod("p", requests={"cpu": "1"}), None, id="no GPU"),
        pytest.param(
            make_pod("p", requests={RESOURCE: "460"}), Demand(1, 460), id="a share, by request alone"
        ),
        pytest.param(
            make_pod("p", requests={RESOURCE: "2k"}, annotations={COUNT: "2"}), Demand(2, 1000), id="two GPUs"
        ),
        pytest.param(
            make_pod("p", requests={RESOURCE: "1k"}, annotations={COUNT: "2"}),
            Demand(2, 500),
            id="two shares",
        ),
        pytest.param(
            make_pod("p", annotations={MEMORY: "2000"}), Demand(1, 0, memory=2000), id="memory in MiB alone"
        ),
        pytest.param(
            gpu_pod("p", 300, models="A10|T4"),
            Demand(1, 300, frozenset({"A10", "T4"}), 1000),
            id="models",
        ),
    ],
)
def test_demand(document, demand):
    """Request and annotations together say what is asked for."""
    assert demand == demand_of(pod(document))


@pytest.mark.parametrize(
    ("requests", "notes", "complaint"),
    [
        pytest.param(460, {MILLI: "500"}, "1 x 500 milli-GPU do not make the requested 460", id="sum"),
        pytest.param(2000, {}, "there are 1000", id="more than one without a count"),
        pytest.param(460, {COUNT: "x"}, "not a number above 0: 'x'", id="no number"),
        pytest.param(460, {MEMORY: "9"}, "is beside a request of .*; write one of them", id="two words"),
        pytest.param(460, {COUNT: "0"}, "not a number above 0", id="zero"),
    ],
)
def test_nonsense_is_named(requests, notes, complaint):
    """A demand that makes no sense says why."""
    with pytest.raises(DemandError, match=complaint):
        demand_of(pod(make_pod("p", requests={RESOURCE: requests}, annotations=notes)))


@pytest.mark.parametrize(
    ("document", "count"),
    [
        pytest.param(gpu_node("n", 8), 8, id="label and resource agree"),
        pytest.param(make_node("n", allocatable={RESOURCE: "4k"}), 4, id="no label"),
        pytest.param(make_node("n", allocatable={RESOURCE: 1000}, labels={COUNT: "8"}), 1, id="fewer usable"),
        pytest.param(make_node("n", labels={COUNT: "8"}), 0, id="device plugin is not up"),
        pytest.param(make_node("n"), 0, id="no GPU"),
    ],
)
def test_devices_of(document, count):
    """A node has the GPUs that it says, as far as it can allocate them."""
    assert count == devices_of(decode_node(msgspec.json.encode(document)))


@pytest.mark.parametrize(
    ("text", "devices"), [("0,3", (0, 3)), ("7", (7,)), ("", None), ("a", None), ("1,", None)]
)
def test_assigned(text, devices):
    """Devices are read back from the annotation, if it can be read."""
    assert devices == assigned_to(pod(make_pod("p", annotations={DEVICES: text})))
