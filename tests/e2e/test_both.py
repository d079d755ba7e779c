"""kube-scheduler and Berth decide alike on random pod groups, and on random claims of devices."""

import pytest

from tests.e2e.both import compare
from tests.kube_scheduler import WITHOUT, kube_scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)]


@pytest.mark.parametrize("seed", [6, 10])
async def test_groups(tmp_path, seed):
    """The same pods of the same groups go to the same nodes, with the same victims, nominations and words."""
    assert [] == await compare("groups", seed, tmp_path)


BREAKS_OFF = 'running "DynamicResources" filter plugin: '
"""Of a request for all devices that one node cannot give: by kube-scheduler 1.36, the attempt fails.

Here that node alone does not fit (docs/upstream-faults.md, 141829).
"""


@pytest.mark.parametrize("seed", [1, 4])
async def test_devices(tmp_path, seed):
    """Claims get the same devices, written in the same way, or are turned down in the same words."""
    found = await compare("devices", seed, tmp_path)

    assert [] == [each for each in found if BREAKS_OFF not in str(each[1])]
