"""Profiles as the queue sees them, before and after their plugins are made or changed."""

from types import SimpleNamespace

from berth.framework.queueing.object_events import NODE_ADD
from berth.framework.runtime import Framework, ProfilePlugins
from berth.plugins.priority_sort import PrioritySort
from berth.scheduler.profiles import Profiles
from tests.unit.queue.kit import PROFILE, Gates, Rejector, queue_it


def a_framework(*plugins):
    """A profile of these plugins, sorted by priority."""
    order = PrioritySort(None, None)
    return Framework(
        PROFILE, ProfilePlugins(queue_sort=[order], by_name={each.name: each for each in plugins})
    )


def test_a_view_that_is_handed_out_early_has_the_profiles_later():
    """The queue is made before the plugins, and is given the same mapping that they come into."""
    profiles = Profiles(extenders=False, generic_workload=False)
    view = profiles.queue_profiles
    profiles.add({PROFILE: a_framework()})

    assert [PROFILE] == list(view)


def test_rewiring_takes_over_what_a_profile_has_now():
    """A gate that was attached is asked, and what its plugin waits for moves pods."""
    framework, gate = a_framework(), Gates()
    profiles = Profiles(extenders=False, generic_workload=False)
    profiles.add({PROFILE: framework})
    waited_for = profiles.queue_profiles[PROFILE].hints
    framework.plugins.by_name |= {gate.name: gate, "A": Rejector("A", {NODE_ADD: queue_it})}
    framework.plugins.pre_enqueue.append(gate)
    profiles.rewire(PROFILE)
    now = profiles.queue_profiles[PROFILE]

    assert [gate] == list(now.pre_enqueue)
    assert waited_for != now.hints


def test_the_first_profile_orders_the_queue():
    """Its QueueSort plugin stands for all of them."""
    profiles = Profiles(extenders=False, generic_workload=False)
    asked = []
    first = a_framework()
    first.plugins.queue_sort = [SimpleNamespace(less=lambda a, b: asked.append((a, b)) or True)]
    profiles.add({PROFILE: first, "other": a_framework()})

    assert profiles.less("a", "b")
    assert [("a", "b")] == asked
