"""For every event that a plugin of the default profile registers: a pod that it rejected is woken by it.

The table of cases has to have each pair that plugins register, and no other.
"""

import pytest

from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.config.plugin_args import ARGS_TYPES
from berth.config.releases.release import effective
from berth.framework.cluster_event import ActionType, EventResource
from berth.framework.interface import EnqueueExtensions
from berth.plugins.registry import IN_TREE
from berth.testing.handles import make_handle
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.whole.hint_cases import CASES, GROUPS, LIMITS, Gone
from tests.scenarios.whole.stories import BACKOFF_IS_OVER_SECONDS

ALL_BITS = [action for action in ActionType if action.bit_count() == 1]
WITHOUT_A_CASE = {
    ("DefaultPreemption", "Pod/Delete"): "its hint skips: the plugins that rejected the pod decide",
    ("DynamicResources", "Pod/Delete"): "test_wake_ups.py: a pod that gives up a claim which another shares",
    ("NodeName", "Node/Add"): "a pod that names a node is on it",
}


def single(event):
    """The single events that a registration stands for."""
    resource = EventResource(event.resource)
    kind = resource.rpartition("/")[2]
    if event.action & ActionType.UPDATE == ActionType.UPDATE:
        yield f"{kind}/Update"
        left = event.action & ~ActionType.UPDATE
    else:
        left = event.action
    for action in ALL_BITS:
        if left & action:
            yield f"{kind}/{action.text}"


def registered():
    """Every plugin of the default profile, all gates of groups on, with the events that it registers."""
    gates = {**GROUPS, **LIMITS}
    profile = load(None, gates=FeatureGates(gates, effective())).profiles[0]
    for name in sorted({plugin for plugins in profile.points.values() for plugin, _ in plugins}):
        plugin = IN_TREE[name](ARGS_TYPES[name]() if name in ARGS_TYPES else None, make_handle(gates=gates))
        if isinstance(plugin, EnqueueExtensions):
            for registration in plugin.events_to_register():
                yield from ((name, event) for event in single(registration.event))


def test_every_registered_event_has_a_case():
    """87 pairs of a plugin and an event, of which three are held otherwise."""
    pairs = set(registered())

    assert sorted(pairs) == sorted({case[:2] for case in CASES} | WITHOUT_A_CASE.keys())
    assert len(pairs) == 87


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.plugin}-{case.event}")
async def test_an_event_wakes_the_pod_that_the_plugin_rejected(case):
    """Right after the event it has a node; before, that plugin kept it waiting."""
    cluster = Cluster(case.plugin, *case.others, gates=case.gates)
    for obj in (*case.given, case.waiting):
        cluster.add(obj)
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)

    assert cluster.where("waiting") in {"pool", "gated"}
    assert case.plugin in cluster.queued("waiting").unschedulable_plugins

    if not isinstance(case.happens, Gone):
        cluster.add(case.happens)
    elif isinstance(case.happens.obj, str):
        cluster.delete_pod(case.happens.obj)
    else:
        cluster.remove(case.happens.obj)
    await cluster.tick(1)

    assert cluster.where("waiting") in {"assumed", "placed"}
