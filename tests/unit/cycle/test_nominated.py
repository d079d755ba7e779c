"""Pods that were promised nodes count on all of these at once as on each. Source: spec/core.md 4.7."""

import asyncio

import numpy as np
from hypothesis import given, settings

from berth.framework.diagnosis import FitError
from berth.framework.filtering import filter_one, filter_with_nominated
from berth.framework.nominated import NominatedPods, with_pods
from berth.framework.status import Status
from berth.snapshot.pod_info import PodInfo
from tests.unit.preemption.contests import contests
from tests.unit.preemption.kit import node, placed, preemptor, stage


@settings(max_examples=80, deadline=None)
@given(contests(follows=False))
def test_4_7_law_all_nodes_together_are_each_node_alone(contest):
    """A node's status is that of the pass with nominated pods, then of the one without."""
    asyncio.run(each_alone(contest))


async def each_alone(contest):
    s, pod = contest
    found, attempt = await s.search(pod)
    if isinstance(found, Status):
        assert isinstance(found.error, FitError)
        statuses = found.error.diagnosis.statuses()
    else:
        statuses = found.diagnosis.statuses()
    for row, name in enumerate(s.snapshot.names):
        promised = s.handle.nominator.nominated_pods_for_node(name)
        others = [PodInfo(p) for p in promised if p.priority >= pod.priority and p.uid != pod.uid]
        plugins, extensions = s.framework.plugins.filter, s.framework.extensions
        status = await filter_with_nominated(plugins, extensions, attempt, row, others)
        if status.ok:
            alone = attempt.on(s.snapshot.view(slice(row, row + 1)), attempt.state)
            status = await filter_one(plugins, alone)
        assert status == statuses.get(row, Status())


def test_with_pods_is_what_if_of_each_node():
    """The table of several nodes has the columns of the tables of one."""
    s = stage([node("n0"), node("n1"), node("n2")], [placed("a", "1", host_ports=[80]), placed("b", on="n2")])
    coming = {2: [PodInfo(preemptor("2", host_ports=[81]))], 0: [PodInfo(preemptor(name="x"))]}
    table = with_pods(s.snapshot, coming)

    for i, row in enumerate(coming):
        alone = s.snapshot.what_if(s.snapshot.names[row], add=coming[row])
        assert (alone.names, alone.pods, alone.ports) == ([table.names[i]], [table.pods[i]], [table.ports[i]])
        for column in ("requested", "non_zero_requested", "pod_count", "allocatable"):
            assert np.array_equal(getattr(alone, column)[..., 0], getattr(table, column)[..., i])


def test_what_a_nominated_pod_holds_is_worked_out_once_for_each_version():
    waiting, changed = (preemptor(cpu, nominated_node_name="n0") for cpu in "12")
    s = stage([node()], nominated=[waiting])
    nominated = NominatedPods(s.handle.nominator)
    (first,) = nominated.beside(preemptor(name="other"), s.snapshot)[0]
    (again,) = nominated.beside(preemptor(name="other"), s.snapshot)[0]
    s.handle.nominator.by_node = {"n0": [changed]}
    (new,) = nominated.beside(preemptor(name="other"), s.snapshot)[0]

    assert first is again
    assert changed is new.pod
