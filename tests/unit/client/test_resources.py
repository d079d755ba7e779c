"""Paths of the API, and the times in it."""

from datetime import UTC, datetime

import pytest

from berth.client.resources import LEASES, NODES, PODS
from berth.client.timing import micro_time


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/v1/pods", PODS.collection()),
        ("/api/v1/namespaces/ns/pods", PODS.collection("ns")),
        ("/api/v1/namespaces/ns/pods/a.b-c/binding", PODS.path("ns", "a.b-c", "binding")),
        ("/api/v1/nodes/n1", NODES.path("", "n1")),
        ("/apis/coordination.k8s.io/v1/namespaces/ns/leases/l", LEASES.path("ns", "l")),
        ("/api/v1/namespaces/a%2F..%2Fb/pods/%3Fx%0D%0A", PODS.path("a/../b", "?x\r\n")),
        ("/api/v1/namespaces/a%0A/pods", PODS.collection("a\n")),
    ],
)
def test_paths(path, found):
    """Names become parts of a path and can't be more than that."""
    assert path == found


def test_micro_time():
    """Times are written in UTC with six digits, zeros included."""
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()

    assert micro_time(moment + 6e-6) == "2026-01-02T03:04:05.000006Z"
    assert micro_time(moment) == "2026-01-02T03:04:05.000000Z"
