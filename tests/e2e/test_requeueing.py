"""A pod that fits nowhere is tried again by the event that makes it fit, and by no other."""

import pytest

from tests.e2e.default_cluster import default_cluster
from tests.e2e.waiting import CASES, Counts, Pods, help_out, prepare, storm, surroundings, wait_until_rejected
from tests.kube_scheduler import EITHER

pytestmark = pytest.mark.e2e

STORM = 200


@pytest.fixture(params=EITHER)
async def cluster(request, tmp_path, api_server):
    """Sandbox and scheduler, and what the waiting pods find there."""
    chosen = {"scheduler": request.param, "server": api_server}
    async with default_cluster(tmp_path, surroundings(), **chosen) as running:
        await prepare(running)
        yield running


async def test_each_event_that_helps_brings_the_pod_back_and_no_other_does(cluster):
    """One attempt fails, 200 events of the same sort cause none, the one that helps causes one, which binds.

    No flush has a part in it.
    """
    pods, counted = Pods(), {}
    async with cluster.watching(pods.look):
        for case in CASES:
            before = (await Counts.of(cluster)).attempts
            await wait_until_rejected(cluster, pods, case)
            await storm(cluster, case, STORM)
            waited = await Counts.of(cluster)
            await help_out(cluster, pods, case)
            after = await Counts.of(cluster)
            attempts = waited.attempts - before, after.attempts - waited.attempts
            counted[case.name] = (*attempts, after.flushed)

    assert {case.name: (1, 1, 0) for case in CASES} == counted
