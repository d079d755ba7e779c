import pytest

from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.plugins.priority_sort import PrioritySort
from berth.testing.builders import make_pod
from berth.testing.handles import make_plugin


@pytest.mark.parametrize(
    ("first", "second", "less"),
    [
        pytest.param((5, 2.0), (1, 1.0), True, id="higher priority"),
        pytest.param((1, 1.0), (5, 2.0), False, id="lower priority"),
        pytest.param((None, 2.0), (-1, 1.0), True, id="no priority is 0"),
        pytest.param((1, 1.0), (1, 2.0), True, id="queued earlier"),
        pytest.param((1, 1.0), (1, 1.0), False, id="equal in both"),
    ],
)
def test_less(first, second, less):
    """Priority decides, then the time of queueing."""
    a, b = (QueuedPodInfo(make_pod(priority=priority), since) for priority, since in (first, second))

    assert less == make_plugin(PrioritySort).less(a, b)
