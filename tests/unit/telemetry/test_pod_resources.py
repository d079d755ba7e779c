"""What pods request and are limited to, as metrics."""

import pytest

from berth.objects.pods.pod_decoding import pod_from_document
from berth.telemetry.metrics.pod_resources import pod_resource_text, unit_of

WHO = 'namespace="shop",node="n1",pod="web",'


def pod(*, limits=None, phase="Running", node="n1", **spec):
    resources = {"requests": {"cpu": "250m", "memory": "1Ki", "example.com/gpu": "0"}, "limits": limits or {}}
    return pod_from_document(
        {
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
            "spec": {
                "nodeName": node,
                "schedulerName": "s",
                "containers": [{"name": "c", "image": "i", "resources": resources}],
                **spec,
            },
            "status": {"phase": phase},
        }
    )


def lines(*pods):
    """The samples without their names' common parts, sorted."""
    text = pod_resource_text(pods).decode()
    return sorted(line.removeprefix("kube_pod_resource_") for line in text.splitlines() if line[0] != "#")


def sample(kind, resource, unit, value, priority=""):
    labels = f'{WHO}priority="{priority}",resource="{resource}",scheduler="s",unit="{unit}"'
    return f"{kind}{{{labels}}} {value}"


def test_requests_and_limits():
    """One sample for each resource that is not nought, in its base unit."""
    found = lines(pod(limits={"cpu": "2"}, priority=7))

    assert [
        sample("limit", "cpu", "cores", 2.0, 7),
        sample("request", "cpu", "cores", 0.25, 7),
        sample("request", "memory", "bytes", 1024.0, 7),
    ] == found


def test_overhead_counts_where_there_is_a_limit():
    """A pod's overhead is part of its requests, and of the limits that it has."""
    found = lines(pod(limits={"cpu": "2"}, overhead={"cpu": "1", "memory": "1Ki"}))

    assert [
        sample("limit", "cpu", "cores", 3.0),
        sample("request", "cpu", "cores", 1.25),
        sample("request", "memory", "bytes", 2048.0),
    ] == found


def test_init_containers_and_pod_level():
    """The largest init container counts where it exceeds the sum; what the pod sets itself replaces both."""
    init = {"name": "i", "image": "i", "resources": {"limits": {"cpu": "5", "memory": "2Ki"}}}
    found = lines(pod(limits={"cpu": "2"}, initContainers=[init], resources={"limits": {"memory": "9Ki"}}))

    assert [sample("limit", "cpu", "cores", 5.0), sample("limit", "memory", "bytes", 9216.0)] == found[:2]


@pytest.mark.parametrize(
    ("phase", "node", "shown"),
    [("Succeeded", "n1", False), ("Failed", "n1", False), ("Pending", "", True)],
)
def test_finished_pods_are_left_out(phase, node, shown):
    """A pod that ran to its end holds nothing any more."""
    assert shown == bool(lines(pod(phase=phase, node=node)))


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-csi-x", "integer"),
        ("example.com/gpu", ""),
    ],
)
def test_unit(resource, unit):
    assert unit == unit_of(resource)
