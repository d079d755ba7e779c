"""Thirty pods that preempt at once: no victim is evicted twice."""

import pytest

from tests.e2e.async_preemption import VICTIMS, preempt

pytestmark = pytest.mark.e2e


async def test_each_victim_is_deleted_once_and_reported_once(tmp_path, api_server):
    """One deletion and one Preempted event for each of thirty victims, though the watch is behind."""
    found = await preempt(tmp_path, real=api_server.real)

    assert [1] * VICTIMS == [len(times) for times in found.deletions.values()]
    assert dict.fromkeys(found.deletions, 1) == found.events
