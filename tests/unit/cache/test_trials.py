"""Pods that are placed or evicted in the snapshot alone (core 7.4, 6.8)."""

import logging

import pytest

from berth.cache.cache import Cache
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    Resources,
)
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from tests.failures.reporting import reports
from tests.unit.snapshot.facts import facts

TERM = PodAffinityTerm(label_selector=LabelSelector({"zone": "a"}), topology_key="zone")


def rich_pod(name, node):
    """A pod with all that has columns: a resource that no node offers, ports, labels, terms, claims."""
    container = Container(
        ports=(ContainerPort(80, "10.0.0.1", "TCP"),),
        resources=Resources(requests={"cpu": "500m", "memory": "1Gi", "example.com/new": "3"}),
    )
    return make_pod(
        name,
        node_name=node,
        labels={"zone": "a", "disk": "ssd"},
        containers=(container,),
        affinity=Affinity(pod_anti_affinity=PodAffinity((TERM,))),
        volumes=({"persistentVolumeClaim": {"claimName": "data"}},),
    )


def bed():
    cache, snapshot = Cache(), Snapshot()
    for i in range(3):
        cache.add_node(make_node(f"n{i}"))
    cache.add_pod(rich_pod("placed", "n1"))
    cache.update_snapshot(snapshot)
    return cache, snapshot


def test_the_version_counts_what_happened_and_no_trial():
    """A trial that is taken back leaves the snapshot as it was; an update without news does so, too."""
    cache, snapshot = bed()
    before = cache.version
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("tried", "n0")))
    cache.undo_trials(snapshot)
    cache.update_snapshot(snapshot)
    same = cache.version
    cache.add_pod(rich_pod("new", "n0"))
    cache.update_snapshot(snapshot)

    assert before == same
    assert before + 1 == cache.version


@pytest.mark.parametrize("node", ["n0", "n1"])
def test_a_pod_placed_on_trial_counts_like_one_that_is_there(node):
    """The snapshot with a trial equals one that took the pod over from the cache."""
    cache, snapshot = bed()
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("tried", node)))
    other, really = bed()
    other.add_pod(rich_pod("tried", node))
    other.update_snapshot(really)

    assert facts(really) == facts(snapshot)


def test_a_pod_evicted_on_trial_counts_like_one_that_is_gone():
    """The snapshot without a pod equals one whose cache never had it."""
    cache, snapshot = bed()
    cache.try_pod(snapshot, -1, PodInfo(rich_pod("placed", "n1")))
    other, really = bed()
    other.remove_pod(rich_pod("placed", "n1"))
    other.update_snapshot(really)

    assert facts(really) == facts(snapshot)


def test_everything_is_as_it_was_once_trials_are_taken_back():
    """Trials on one and several nodes leave nothing behind, down to the objects that rows hold."""
    cache, snapshot = bed()
    before, pods = facts(snapshot), list(snapshot.pods)
    for sign, pod in ((1, "a"), (-1, "placed"), (1, "b")):
        cache.try_pod(snapshot, sign, PodInfo(rich_pod(pod, "n1")))
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("c", "n2")))
    cache.undo_trials(snapshot)

    assert before == facts(snapshot)
    assert all(now is then for now, then in zip(snapshot.pods, pods, strict=True))


def test_only_the_latest_trials_are_taken_back():
    """A number says how many are to stand."""
    cache, snapshot = bed()
    for name in "abc":
        cache.try_pod(snapshot, 1, PodInfo(rich_pod(name, "n0")))
    cache.undo_trials(snapshot, 2)

    assert ["default-a", "default-b"] == list(snapshot.pods[0])


def test_a_trial_left_behind_is_dropped_with_the_next_update(caplog):
    """3.5: pods of an unfinished pod-group cycle do not outlive it, and an error says so."""
    cache, snapshot = bed()
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("a", "n0")))
    with caplog.at_level(logging.ERROR):
        cache.update_snapshot(snapshot)

    assert {} == snapshot.pods[0]
    assert "unfinished pod-group cycle" in caplog.text


def test_copies_of_rows_follow_trials():
    """Sidecars see the same pods as those in this one."""
    cache, snapshot = bed()
    steps = []
    cache.followers.append(steps.append)
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("a", "n0")))
    cache.undo_trials(snapshot)

    assert [1, -1] == [sign for step in steps for sign, _ in step.pods]
    assert [step.generation for step in steps] == [snapshot.generation - 1, snapshot.generation]


def test_changed_rows_are_noted():
    """What is kept for rows that stay as they are hears of trials and of their end."""
    cache, snapshot = bed()
    position = snapshot.changed_rows.end
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("a", "n2")))
    cache.undo_trials(snapshot)

    assert [2, 2] == list(snapshot.changed_rows.since(position))


def test_a_pod_on_trial_is_not_assumed():
    cache, snapshot = bed()
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("a", "n0")))

    assert not cache.is_assumed("default-a")


@reports("contradicted", log="`pods of an unfinished pod-group cycle dropped`")
def test_trials_that_are_left_are_dropped(caplog):
    """A snapshot is not updated on top of them: that is logged, and they count no more."""
    cache, snapshot = bed()
    cache.try_pod(snapshot, 1, PodInfo(rich_pod("tried", "n0")))
    cache.update_snapshot(snapshot)

    assert "pods of an unfinished pod-group cycle dropped count=1" in caplog.text
    assert not cache._trials
