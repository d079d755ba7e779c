"""kube-scheduler and Berth on clusters, pods and configurations by chance: see tests/chance."""

import pytest

from tests.chance.cluster import SUBJECTS, draw
from tests.chance.run import run
from tests.kube_scheduler import WITHOUT, kube_scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("seed", range(1))
async def test_decides_alike(tmp_path, subject, seed):
    """Of 40 pods, scores by plugin and node, feasible nodes, reasons, devices and victims are the same."""
    found = await run(draw(subject, seed, pods_count=40), tmp_path)

    assert [] == found.differences
    assert 5 < found.bound
    assert 2 < found.rejected
