import pytest

from berth.sandbox.custom_resources.json_path import find
from berth.sandbox.reading.tables import human_duration
from berth.sandbox.reading.tables_scheduling import PODS


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
        (-5, "0s"),
    ],
)
def test_duration(seconds, expected):
    """Ages are written as kubectl writes them."""
    assert expected == human_duration(seconds)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "Pending"),
        ({"status": {"phase": "Running"}}, "Running"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted"),
        ({"metadata": {"name": "a", "deletionTimestamp": "2023-11-14T22:13:20Z"}}, "Terminating"),
        (
            {
                "status": {
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
                }
            },
            "SchedulingGated",
        ),
        (
            {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}},
            "ImagePullBackOff",
        ),
    ],
)
def test_pod_status(change, expected):
    """The STATUS column shows the most telling reason."""
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{}]}, "status": {"phase": "Pending"}, **change}

    assert expected == PODS.cells(pod, 0)[2]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.milli", [5]),
        (".items[0].name", ["a"]),
        (".items[-1].name", ["b"]),
        (".items[*].name", ["a", "b"]),
        ('.items[?(@.name=="b")].value', [2]),
        (".spec['milli']", [5]),
        (".labels.example\\.com/x", ["y"]),
        (".nothing.here", []),
        (".items[7]", []),
        ("spec", []),
    ],
)
def test_json_path(path, expected):
    """Printer columns find what their paths lead to."""
    document = {
        "spec": {"milli": 5},
        "items": [{"name": "a", "value": 1}, {"name": "b", "value": 2}],
        "labels": {"example.com/x": "y"},
    }

    assert expected == find(document, path)
