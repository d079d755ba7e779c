"""kube-scheduler and Berth on clusters, pods and configurations by chance: see tests/chance."""

import pytest

from tests.chance import simulating
from tests.chance.cluster import SUBJECTS, admissible, draw
from tests.chance.mended import mended
from tests.chance.run import run
from tests.e2e.api_servers import api_server_called
from tests.kube_scheduler import WITHOUT, kube_scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)]


def unexplained(found):
    """The differences, but for those in which Berth mends a fault of kube-scheduler."""
    return [(name, lines) for name, lines in found.differences if not mended(found.scenarios[name], lines)]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("seed", range(1))
async def test_decides_alike(tmp_path, subject, seed):
    """Of 40 pods, scores by plugin and node, feasible nodes, reasons, devices and victims are the same."""
    found = await run(draw(subject, seed, pods_count=40), tmp_path)

    assert [] == unexplained(found)
    assert 5 < found.bound
    assert 2 < found.rejected


async def test_simulations_decide_alike(tmp_path):
    """Of 12 pods on a real API server reasons are the same, and nodes and victims as good."""
    drawn = admissible(draw("everything", 1, pods_count=12))

    found = await run(drawn, tmp_path, judge=simulating.differences, server=api_server_called("real"))

    assert [] == unexplained(found)
    assert 2 < found.bound
    assert 2 < found.rejected
