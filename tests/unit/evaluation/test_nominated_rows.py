"""Pods that were promised nodes count on all of these at once as on each."""

import asyncio

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.evaluation.filter_with_nominated import filter_with_nominated
from berth.evaluation.nominated_rows import NominatedPods, with_pods
from berth.evaluation.points.filtering import filter_one
from berth.framework.attempts.diagnosis import FitError
from berth.framework.interface import NominatingInfo, NominatingMode
from berth.framework.status import Status
from berth.queue.pools.nominator import Nominator
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.handles import FixedNominator
from tests.suite import examples
from tests.unit.preemption.contests import contests
from tests.unit.preemption.kit import node, placed, preemptor, stage


@settings(max_examples=examples(80), deadline=None)
@given(contests())
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
        statuses = found.diagnosis_builder.diagnosis().statuses()
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
    coming = [
        preemptor("2", host_ports=[81], nominated_node_name="n2"),
        preemptor(name="x", nominated_node_name="n0"),
    ]
    promised = NominatedPods(FixedNominator.of(coming)).beside(preemptor(name="y"), s.snapshot)
    table = with_pods(s.snapshot, promised)

    assert [0, 2] == promised.rows.tolist()
    for i, row in enumerate(promised.rows.tolist()):
        alone = s.snapshot.what_if(s.snapshot.names[row], add=promised.pods[row])
        assert (alone.names, alone.pods, alone.ports) == ([table.names[i]], [table.pods[i]], [table.ports[i]])
        for column in ("requested", "non_zero_requested", "pod_count", "allocatable"):
            assert np.array_equal(getattr(alone, column)[..., 0], getattr(table, column)[..., i])


def test_what_a_nominated_pod_holds_is_worked_out_once_for_each_version():
    waiting, changed = (preemptor(cpu, nominated_node_name="n0") for cpu in "12")
    s = stage([node()], nominated=[waiting])
    nominated = NominatedPods(s.handle.nominator)
    (first,) = nominated.beside(preemptor(name="other"), s.snapshot).pods[0]
    (again,) = nominated.beside(preemptor(name="other"), s.snapshot).pods[0]
    s.handle.nominator.by_node = {"n0": [changed]}
    (new,) = nominated.beside(preemptor(name="other"), s.snapshot).pods[0]

    assert first is again
    assert changed is new.pod


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("nominate", "take back", "pop", "return", "node")),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    max_size=25,
)


@settings(max_examples=examples(80), deadline=None)
@given(STEPS)
def test_2_14_law_what_is_kept_is_what_the_nominator_says_now(steps):
    """After any sequence of nominations, pods in flight and nodes that come and go, for any priority."""
    waiting = {pod.key: pod for pod in (preemptor(f"{i + 1}", i, f"p{i}") for i in range(4))}
    queued = dict(waiting)
    nominator = Nominator(lambda namespace, name: waiting[f"{namespace}/{name}"], queued.get)
    cache, nodes = Cache(), Snapshot()
    there, kept = set(), NominatedPods(nominator)
    for kind, i, on in steps:
        pod = waiting[f"default/p{i}"]
        match kind:
            case "nominate":
                nominator.add(pod, NominatingInfo(NominatingMode.OVERRIDE, f"n{on}"))
            case "take back":
                nominator.delete(pod)
            case "pop":
                queued.pop(pod.key, None)
                nominator.touch(pod)
            case "return":
                queued[pod.key] = pod
                nominator.touch(pod)
            case "node":
                (cache.remove_node if on in there else cache.add_node)(node(f"n{on}"))
                there ^= {on}
        cache.update_snapshot(nodes)
        asks = preemptor(name="p3", priority=i % 2)
        fresh, found = NominatedPods(nominator).beside(asks, nodes), kept.beside(asks, nodes)
        assert promised_pods(nominator, asks, nodes) == names_by_row(found)
        for part in ("rows", "count", "requested", "non_zero"):
            assert np.array_equal(getattr(fresh, part), getattr(found, part))


def promised_pods(nominator, asks, nodes):
    """The names by row, asked of the nominator node by node."""
    by_row = {}
    for name, row in nodes.row_of.items():
        pods = nominator.nominated_pods_for_node(name)
        names = [pod.name for pod in pods if pod.priority >= asks.priority and pod.uid != asks.uid]
        if names:
            by_row[row] = names
    return by_row


def names_by_row(promised):
    return {row: [info.pod.name for info in promised.pods[row]] for row in promised.rows.tolist()}
