"""Plugins that count over a rack or over the cluster, put to the kit."""

import pytest

from berth.conformance import CHECKS
from tests.unit.conformance.broken import Fault, failed, verified
from tests.unit.conformance.domains import DOMAINS, all_at_once, ignoring

OVERLAYS = [each for name, each in CHECKS.items() if name.startswith("overlays/")]


def limited(plugin, limit):
    """That plugin with another limit."""
    return type(plugin.__name__, (plugin,), {"limit": limit})


@pytest.mark.parametrize("limit", [1, 2, 5, 6])
@pytest.mark.parametrize("plugin", DOMAINS)
async def test_right(plugin, limit):
    """A plugin whose answer for a node depends on pods on others passes every check, whatever its limit."""
    results = await verified(Fault(plugin=limited(plugin, limit)))

    assert {} == failed(results)


@pytest.mark.parametrize("plugin", DOMAINS)
@pytest.mark.parametrize(
    ("fault", "limit", "check"),
    [
        pytest.param(ignoring("removed_pod_uids"), None, "overlays/removed", id="removed pods still counted"),
        pytest.param(ignoring("added_pods"), 1, "overlays/added", id="added pods not counted"),
        pytest.param(all_at_once, None, "overlays/added", id="overlays of one call added up"),
    ],
)
async def test_broken(plugin, fault, limit, check):
    """A wrong count is caught, with the node, the pod and both verdicts."""
    plugin = plugin if limit is None else limited(plugin, limit)

    failures = failed(await verified(Fault(fault, plugin=plugin), OVERLAYS))

    assert {check} == set(failures)
    assert "passes" in failures[check]
    assert plugin.reasons[0].text in failures[check]
