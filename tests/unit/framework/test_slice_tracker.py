"""Slices with the taints of administrators' rules (DRADeviceTaintRules)."""

import pytest

from berth.event_handlers.device_taints import SLICE_UPDATE, DeviceTaintRuleHandler
from berth.framework.mirrors.listers import Listers
from berth.objects.decode import from_document
from berth.objects.devices.devices import DeviceTaintRule
from berth.testing.handles import ManualClock
from tests.unit.event_handlers.test_handlers import Calls
from tests.unit.plugins.dynamic_resources.kit import DRIVER, device, make_slice

OWN = {"key": "own", "effect": "NoExecute"}
SLICES = (make_slice("s0", [device("a", taints=[OWN]), device("b")]), make_slice("s1", [device("a")]))


def make_rule(selector, *, name="repair", key="broken", effect="NoSchedule"):
    spec = {"taint": {"key": key, "effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return from_document({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


@pytest.fixture
def listers():
    made = Listers()
    for part in SLICES:
        made.resource_slices.put(part)
    return made


def taints(listers):
    """The keys of taints by slice and device, where there are any."""
    return {
        (part.name, each.name): [taint.key for taint in each.taints]
        for part in listers.slice_tracker
        for each in part.spec.devices
        if each.taints
    }


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        pytest.param(None, [], id="no selector means none"),
        pytest.param({}, [("s0", "a"), ("s0", "b"), ("s1", "a")], id="an empty one means all"),
        pytest.param({"driver": DRIVER}, [("s0", "a"), ("s0", "b"), ("s1", "a")], id="a driver"),
        pytest.param({"driver": "other"}, [], id="another driver"),
        pytest.param({"pool": "s1"}, [("s1", "a")], id="a pool"),
        pytest.param({"device": "a"}, [("s0", "a"), ("s1", "a")], id="a device of any pool"),
        pytest.param({"driver": DRIVER, "pool": "s0", "device": "b"}, [("s0", "b")], id="one device"),
        pytest.param({"pool": "s1", "device": "b"}, [], id="all criteria have to hold"),
    ],
)
def test_selectors(listers, selector, tainted):
    """A rule taints the devices that have every name that it gives, after their own taints."""
    listers.device_taint_rules.put(make_rule(selector))

    assert {("s0", "a"): ["own"]} | {
        where: [*(["own"] if where == ("s0", "a") else []), "broken"] for where in tainted
    } == taints(listers)


def test_slices_stay_the_same_objects(listers):
    """What no rule means, or means as before, is the same object, so that nothing is worked out again."""
    assert list(SLICES) == list(listers.slice_tracker)
    before = listers.slice_tracker.generation
    listers.device_taint_rules.put(make_rule({"pool": "s1"}))
    untouched, tainted = listers.slice_tracker
    listers.device_taint_rules.put(make_rule({"pool": "another"}, name="other"))

    assert SLICES[0] is untouched
    assert (untouched, tainted) == tuple(listers.slice_tracker)
    assert all(a is b for a, b in zip((untouched, tainted), listers.slice_tracker, strict=True))
    assert listers.slice_tracker.generation > before


def test_a_new_slice(listers):
    """A slice that is published anew is tainted by the rules that there are."""
    listers.device_taint_rules.put(make_rule({"device": "c"}))
    listers.resource_slices.put(make_slice("s1", [device("c")]))

    assert {("s0", "a"): ["own"], ("s1", "c"): ["broken"]} == taints(listers)


def test_changed_rules_are_changed_slices(listers):
    """Each slice that gets or loses a taint is an update of that slice for waiting pods; no other is."""
    queue = Calls()
    handler = DeviceTaintRuleHandler(queue, listers, clock=ManualClock())
    first, moved = make_rule({"pool": "s0"}), make_rule({"pool": "s1"})

    handler.on_add(first)
    handler.on_update(first, moved)
    handler.on_delete(moved)

    assert [(SLICE_UPDATE.label, name) for name in ("s0", "s0", "s1", "s1")] == [
        (label, new.name) for label, _, new in queue.log
    ]
    assert {("s0", "a"): ["own"]} == taints(listers)


def test_rules_count_in_the_order_in_which_they_came(listers):
    """Whether they name the device or mean all of them; a rule that changes keeps its place."""
    store = listers.device_taint_rules
    for name, selector in (("first", {"device": "b"}), ("second", {}), ("third", {"device": "b"})):
        store.put(make_rule(selector, name=name, key=name))
    store.put(make_rule({"device": "b"}, name="first", key="changed"))

    assert ["changed", "second", "third"] == taints(listers)["s0", "b"]

    store.remove(make_rule({}, name="second"))

    assert {("s0", "a"): ["own"], ("s0", "b"): ["changed", "third"]} == taints(listers)


def test_a_rule_that_means_another_device(listers):
    """What it tainted before is free of it again."""
    listers.device_taint_rules.put(make_rule({"device": "b"}))
    assert ["broken"] == taints(listers)["s0", "b"]
    listers.device_taint_rules.put(make_rule({"pool": "s1", "device": "a"}))

    assert {("s0", "a"): ["own"], ("s1", "a"): ["broken"]} == taints(listers)
