"""Pods that wait for a node: what they ask for costs what its size says, once."""

import numpy as np
import pytest

from berth.evaluation.caching import signatures
from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.node_selector import NodeAffinity, NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from berth.objects.pods.pod_spec import Affinity, TopologySpreadConstraint
from berth.objects.taint import Taint, Toleration
from berth.plugins.node_resources_fit.hints import NODE_EVENTS, FitHints
from berth.plugins.node_resources_fit.patterns import Patterns
from berth.snapshot.snapshot import MAX_ANSWER_BYTES
from tests.hostile.cluster import Cluster, changed, waiting
from tests.hostile.work import calls, growth, kept_bytes

HOST = "kubernetes.io/hostname"
LINEAR = 1.2
MAX_KEPT = 40 << 20


def required(*terms):
    return Affinity(NodeAffinity(NodeSelector(tuple(terms))))


def preferred(n):
    wishes = (
        PreferredSchedulingTerm(1, NodeSelectorTerm((Requirement(f"k{i}", "Exists"),))) for i in range(n)
    )
    return Affinity(NodeAffinity(None, tuple(wishes)))


def spread(n, action, **more):
    """Constraints with a key and a selector each."""
    return tuple(
        TopologySpreadConstraint(1, f"t{n}-{i}", action, LabelSelector({f"k{n}-{i}": "v"}), **more)
        for i in range(n)
    )


def labels(n):
    return {f"key-{i}": "v" for i in range(n)}


PODS = {
    "nodeSelector": lambda n: {"node_selector": {f"k{i}": "v" for i in range(n)}},
    "keys that no node may have": lambda n: {
        "affinity": required(NodeSelectorTerm(tuple(Requirement(f"k{i}", "DoesNotExist") for i in range(n))))
    },
    "values of an In": lambda n: {
        "affinity": required(NodeSelectorTerm((Requirement(HOST, "In", tuple(f"n{i}" for i in range(n))),)))
    },
    "values of a NotIn": lambda n: {
        "affinity": required(
            NodeSelectorTerm((Requirement(HOST, "NotIn", tuple(f"x{i}" for i in range(n))),))
        )
    },
    "node selector terms": lambda n: {
        "affinity": required(*(NodeSelectorTerm((Requirement(HOST, "In", (f"x{i}",)),)) for i in range(n)))
    },
    "terms that name nodes": lambda n: {
        "affinity": required(
            *(NodeSelectorTerm((), (Requirement("metadata.name", "In", (f"n{i}",)),)) for i in range(n))
        )
    },
    "preferences": lambda n: {"affinity": preferred(n)},
    "tolerations": lambda n: {
        "tolerations": tuple(Toleration("k", "Equal", f"v{i}", "NoSchedule") for i in range(n))
    },
    "hard constraints": lambda n: {"topology_spread_constraints": spread(n, "DoNotSchedule")},
    "soft constraints": lambda n: {"topology_spread_constraints": spread(n, "ScheduleAnyway")},
    "constraints that honor a long affinity": lambda n: {
        "topology_spread_constraints": spread(n, "ScheduleAnyway", node_taints_policy="Honor"),
        "affinity": required(NodeSelectorTerm((Requirement(HOST, "In", tuple(f"n{i}" for i in range(n))),))),
        "tolerations": tuple(Toleration("k", "Equal", f"v{i}", "NoSchedule") for i in range(n)),
    },
    "matchLabelKeys": lambda n: {
        "labels": labels(n),
        "topology_spread_constraints": (
            TopologySpreadConstraint(
                1, HOST, "DoNotSchedule", LabelSelector(), match_label_keys=tuple(labels(n))
            ),
        ),
    },
    "labels": lambda n: {"labels": labels(n)},
}


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.close()


@pytest.mark.parametrize("shape", PODS)
def test_a_pod_that_is_new_costs_what_its_size_says(shape, cluster):
    """Nothing is known of a pod like it; one more field makes it unlike the last."""
    cluster.schedule(waiting(**PODS[shape](10)))

    def of_size(n):
        return lambda: cluster.schedule(waiting(**PODS[shape](n)))

    assert growth(of_size, 100) < LINEAR


@pytest.mark.parametrize("shape", PODS)
def test_pods_unlike_each_other_leave_a_bounded_amount(shape, cluster):
    """What was asked last is kept within a number of bytes, not of questions."""
    cluster.schedule(waiting(**PODS[shape](3)))

    def generations():
        for i in range(3):
            cluster.schedule(waiting(**PODS[shape](550 + i)))

    assert kept_bytes(generations, enough=MAX_KEPT) < MAX_KEPT


def test_answers_take_a_bounded_amount():
    """However many pods ask for other nodes, answers about nodes take so many bytes and no more."""
    snapshot = Cluster(64).core.snapshot
    question = "x" * (1 << 20)

    def ask():
        for i in range(200):
            snapshot.answer((question + str(i),), lambda table: table.label_ids(HOST) + 1)

    assert kept_bytes(ask, enough=MAX_ANSWER_BYTES * 1.1) < MAX_ANSWER_BYTES * 1.1


def test_signatures_take_a_bounded_amount(cluster):
    """Pods of a megabyte each are distinguished by what is far smaller."""
    cluster.schedule(waiting())

    def generations():
        for i in range(100):
            cluster.schedule(waiting(labels={f"{i}-{k}": "v" for k in range(2000)}))

    assert kept_bytes(generations, enough=signatures.MAX_BYTES * 1.5) < signatures.MAX_BYTES * 1.5


def test_a_key_that_no_node_has_costs_no_column(cluster):
    """All such keys share one empty column."""
    snapshot = cluster.core.snapshot

    assert snapshot.label("nowhere") is snapshot.label("nowhere either")
    assert calls(lambda: snapshot.label("nowhere at all")) < 10
    assert kept_bytes(lambda: [snapshot.label(f"k{i}") for i in range(10_000)], enough=10_000) < 10_000


def test_an_event_reads_a_node_once_for_all_waiting_pods():
    """However much the node offers, what a waiting pod adds to the event is what its own size says."""

    def added_by_a_pod(resources):
        made = Cluster(1)
        offers = {"allocatable": {f"example.com/r{i}": "1" for i in range(resources)}}
        old = changed(made.core.snapshot.nodes[0], status=offers)
        new = changed(old, status={"allocatable": offers["allocatable"] | {"example.com/more": "1"}})
        hint = next(
            h.hint
            for h in FitHints(None, resizes_count_by_pod=False).registrations()
            if h.event is NODE_EVENTS
        )
        hint(waiting(), old, new)
        made.close()
        return calls(lambda: hint(waiting(requests={"example.com/none": "1"}), old, new))

    few = added_by_a_pod(10)
    assert added_by_a_pod(1000) <= few


def test_combinations_of_reasons_are_not_sorted():
    """A pod of many resources on many nodes: a step for each resource and one for each node."""
    patterns = Patterns(str(i) for i in range(1000))
    nothing, short = np.zeros(500, dtype=bool), np.arange(500) % 2 == 1
    codes = patterns.codes(nothing, ((short, nothing) for _ in range(1000)))

    assert [0, 1] * 250 == codes.tolist()
    assert (False, [str(i) for i in range(1000)], False) == patterns.pattern(1)


def test_a_pod_may_request_more_resources_than_a_number_has_bits(cluster):
    """The verdict names each resource that falls short, as it does for few."""
    requests = {f"example.com/r{i:03}": "1" for i in range(100)}
    verdict = cluster.schedule(waiting(requests=requests | {"cpu": "1"}))

    missing = ", ".join(f"8 Insufficient example.com/r{i:03}" for i in range(100))
    assert verdict.startswith(f"0/8 nodes are available: {missing}.")


@pytest.mark.parametrize("operator", ["Equal", "Exists", "Gt", "Lt"])
def test_tolerations_are_not_multiplied_by_taints(operator):
    """A taint is compared with the tolerations that name its key and value, and of ranges with the widest."""
    made = Cluster(200)
    for i in range(200):
        node = made.core.snapshot.nodes[i]
        made.update_node(changed(node, spec={"taints": (Taint("k", str(-i), "NoSchedule"),)}))
    values = range(5000, 7000)
    pod = waiting(tolerations=tuple(Toleration("k", operator, str(v), "NoExecute") for v in values))
    made.schedule(waiting())

    assert calls(lambda: made.schedule(pod)) < 20 * 2000 + 40 * 200 + 5000
    made.close()
