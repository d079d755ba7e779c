"""Pods on nodes, of whatever size and whichever scheduler placed them, cost and keep what their size says."""

import pytest

from berth.objects.label_selector import LabelSelector, Requirement, Selector
from berth.objects.pods.host_ports import HostPort, host_ports
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    Resources,
    WeightedPodAffinityTerm,
)
from berth.objects.pods.pod_volumes import share_disks
from berth.snapshot.placed import pod_counts
from berth.snapshot.placed.placed_pods import PlacedPods, PodQuery, PodsLike
from berth.snapshot.placed.placed_volumes import PlacedVolumes
from berth.snapshot.placed.pod_counts import LEAST_BYTES, MAX_BYTES
from berth.snapshot.pod_info import PodInfo
from berth.testing.builders import make_pod
from tests.hostile.cluster import Cluster, waiting
from tests.hostile.work import calls, growth, kept_bytes

HOST = "kubernetes.io/hostname"
LINEAR = 1.2
MAX_KEPT = 40 << 20
"""What all bounded tables together may keep of pods that are gone."""


def numbered(n):
    return {f"key-{i}": "v" for i in range(n)}


def anti_affinity(n):
    """Terms that mean the pod that holds them."""
    terms = tuple(
        PodAffinityTerm(
            LabelSelector(match_expressions=(Requirement(f"k{i}", "DoesNotExist"),)), topology_key=HOST
        )
        for i in range(n)
    )
    return Affinity(pod_anti_affinity=PodAffinity(terms))


def preferences(n):
    terms = tuple(
        WeightedPodAffinityTerm(1, PodAffinityTerm(LabelSelector({f"k{i}": "v"}), topology_key=f"t{i}"))
        for i in range(n)
    )
    return Affinity(pod_affinity=PodAffinity((), terms))


def namespaces(n):
    listed = tuple(f"ns-{i}" for i in range(n))
    return Affinity(
        pod_anti_affinity=PodAffinity((PodAffinityTerm(LabelSelector(), listed, topology_key=HOST),))
    )


def one_of(n):
    """A term that lists values, of which the pod's is the last."""
    values = Requirement("app", "In", tuple(f"v{i}" for i in range(n)))
    term = PodAffinityTerm(LabelSelector(match_expressions=(values,)), topology_key=HOST)
    return Affinity(pod_anti_affinity=PodAffinity((term,)))


def init_containers(n):
    return tuple(
        Container(
            f"c{i}",
            "app:1",
            Resources({f"example.com/r{i}": "0"}),
            (ContainerPort(host_port=i + 1),),
            restart_policy="Always" if i % 2 else "",
        )
        for i in range(n)
    )


def volumes(n, kind, source):
    return tuple({"name": f"v{i}", kind: source(i)} for i in range(n))


PODS = {
    "labels": lambda n: {"labels": numbered(n)},
    "extended resources of 0": lambda n: {"requests": {f"example.com/r{i}": "0" for i in range(n)}},
    "extended resources": lambda n: {"requests": {f"example.com/r{i}": "1" for i in range(n)}},
    "overhead": lambda n: {"overhead": {f"example.com/r{i}": "1" for i in range(n)}},
    "host ports": lambda n: {"host_ports": range(1, n + 1)},
    "host port on many addresses": lambda n: {
        "host_ports": [ContainerPort(host_port=80, host_ip=f"10.0.{i // 250}.{i % 250}") for i in range(n)]
    },
    "init containers": lambda n: {"init_containers": init_containers(n)},
    "anti-affinity terms": lambda n: {"affinity": anti_affinity(n)},
    "preferred terms with a topology key each": lambda n: {"affinity": preferences(n)},
    "namespaces of a term": lambda n: {"affinity": namespaces(n)},
    "values of a term": lambda n: {"labels": {"app": f"v{n - 1}"}, "affinity": one_of(n)},
    "claims": lambda n: {"volumes": volumes(n, "persistentVolumeClaim", lambda i: {"claimName": f"c{i}"})},
    "disks": lambda n: {"volumes": volumes(n, "gcePersistentDisk", lambda i: {"pdName": f"d{i}"})},
    "monitors of a disk": lambda n: {
        "volumes": (
            {"name": "v", "rbd": {"monitors": [f"m{i}" for i in range(n)], "image": "i", "pool": "p"}},
        )
    },
    "inline volumes": lambda n: {"volumes": volumes(n, "csi", lambda i: {"driver": f"d{i}"})},
    "image volumes": lambda n: {"volumes": volumes(n, "image", lambda i: {"reference": f"r{i}"})},
}


def among(cluster, fields):
    """A pod comes to a node, one like it is tried, an ordinary one, too, and all are deleted."""
    placed = cluster.place(make_pod("placed", **fields))
    cluster.schedule(waiting(**fields))
    cluster.schedule(waiting("ordinary", labels={"app": "web"}))
    cluster.remove(*placed)


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.close()


@pytest.mark.parametrize("shape", PODS)
def test_a_pod_costs_what_its_size_says(shape, cluster):
    """Four times the size is four times the work at most, for the pod, one like it and an ordinary one."""

    def of_size(n):
        fields = PODS[shape](n)
        among(cluster, fields)
        return lambda: among(cluster, fields)

    assert growth(of_size, 100) < LINEAR


@pytest.mark.parametrize("shape", PODS)
def test_pods_that_are_gone_leave_a_bounded_amount(shape, cluster):
    """Three generations of pods unlike each other leave what tables of what was asked last hold."""
    among(cluster, PODS[shape](3))

    def generations():
        for i in range(3):
            among(cluster, PODS[shape](550 + i))

    assert kept_bytes(generations, enough=MAX_KEPT) < MAX_KEPT


@pytest.mark.parametrize("shape", ["labels", "host ports", "inline volumes", "image volumes"])
def test_pods_that_are_gone_leave_nothing(shape, cluster):
    """What is made for a pod while it is on its node goes with it."""
    among(cluster, PODS[shape](2000))

    def come_and_go():
        cluster.remove(*cluster.place(make_pod("placed", **PODS[shape](4000))))

    assert kept_bytes(come_and_go, enough=100_000) < 100_000


def test_distinct_labels_that_come_and_go_leave_nothing(cluster):
    """A class of pods is forgotten with its last pod; journals keep the names of the last few thousand."""

    def generations(n):
        for i in range(n):
            placed = cluster.place(make_pod(f"p{i}", labels={"job": f"j{i}", f"k{i}": "v"}))
            cluster.remove(*placed)

    generations(10)

    assert kept_bytes(lambda: generations(2000), enough=2000 * 150) < 2000 * 150


def test_a_class_of_pods_is_hashed_once():
    """However often a pod with many labels is counted, its labels are read once."""
    info = PodInfo(make_pod(labels=numbered(5000)))
    other = PodInfo(make_pod(labels=numbered(5000)))
    counts = PlacedPods(4)
    counts.add(0, info)

    assert calls(lambda: counts.add(1, other)) < 100
    assert calls(lambda: counts.add(1, other, -1)) < 100


def test_columns_take_a_bounded_amount_whatever_the_number_of_nodes(monkeypatch):
    """Questions and terms that were not asked about for long give their columns up and are counted anew."""
    monkeypatch.setattr(pod_counts, "LEAST_COLUMNS", 20)
    counts = PlacedPods(100_000)
    counts.terms.follow_label_keys({HOST}, 1)
    counts.add(7, PodInfo(make_pod(labels={"app": "web"}, affinity=anti_affinity(100))))
    terms = [term for held in counts.terms.held() for term in held.times]
    questions = [PodQuery((PodsLike(None, term.term.selector),)) for term in terms]

    def ask():
        return [counts.count(question, 8).tolist() for question in questions]

    assert kept_bytes(ask, enough=2 * MAX_BYTES * 1.1) < 2 * MAX_BYTES * 1.1
    counts.add(7, PodInfo(make_pod(labels={"app": "web"})))
    assert [[0, 0, 0, 0, 0, 0, 0, 2]] * 100 == ask()
    assert {1} == {int(counts.terms.on_rows(held, 8)[7]) for held in counts.terms.held()}


def test_no_port_is_compared_with_all_others(cluster):
    """A pod with one port costs the same beside ten ports as beside thousands."""
    few, many = Cluster(), cluster
    few.place(make_pod("placed", host_ports=range(1, 11)))
    many.place(make_pod("placed", host_ports=range(1, 8001)))
    ask = [HostPort("0.0.0.0", "UDP", 5), HostPort("10.0.0.1", "TCP", 5)]
    snapshots = [few.core.snapshot, many.core.snapshot]
    costs = [calls(lambda s=snapshot: s.port_conflicts(ask)) for snapshot in snapshots]

    assert costs[0] == costs[1]
    assert [True] + [False] * 7 == snapshots[1].port_conflicts(ask).tolist()


def among_classes(selector, n):
    """Asks about n classes of pods, which have an `app` each and no other label."""
    counts = PlacedPods(4)
    for i in range(n):
        counts.add(0, PodInfo(make_pod(labels={"app": f"a{i}"})))
    return lambda: counts.count(PodQuery((PodsLike(None, selector),)), 4).tolist()


@pytest.mark.parametrize(
    "requirements",
    [
        lambda n: tuple(Requirement(f"k{i}", "DoesNotExist") for i in range(n)),
        lambda n: tuple(Requirement("app", "NotIn", (f"x{i}",)) for i in range(n)),
        lambda n: (Requirement("app", "NotIn", tuple(f"x{i}" for i in range(n))),),
        lambda n: (Requirement("app", "In", tuple(f"x{i}" for i in range(n))),),
    ],
)
def test_requirements_are_not_multiplied_by_classes(requirements):
    """Keys that no pod has cost one step each, and all requirements on one key are one rule."""
    ask = among_classes(Selector(requirements(1000)), 1000)

    assert calls(ask) < 12 * 2000


def test_a_question_of_many_terms_is_filed_once():
    """The values of one term are not multiplied by the number of terms."""
    values = Requirement("app", "In", tuple(f"a{i}" for i in range(1000)))
    terms = [Selector((values,)), *(Selector((Requirement(f"k{i}", "DoesNotExist"),)) for i in range(1000))]
    counts = PlacedPods(4)
    counts.add(0, PodInfo(make_pod(labels={"app": "a7"})))
    question = PodQuery(tuple(PodsLike(None, term) for term in terms))

    assert calls(lambda: counts.count(question, 4)) < 15 * 2000
    assert [1, 0, 0, 0] == counts.count(question, 4).tolist()


def test_a_new_question_leaves_what_is_known_of_classes():
    """A pod of a known class costs as much while new questions are asked as it does without them."""
    counts = PlacedPods(4)
    web = PodInfo(make_pod(labels={"app": "web"}))
    counts.add(0, web)
    alone = calls(lambda: counts.add(1, web))

    def after_questions(first, last):
        for i in range(first, last):
            counts.count(PodQuery((PodsLike(None, Selector((Requirement("app", "In", (f"x{i}",)),))),)), 4)
        return calls(lambda: counts.add(1, web))

    assert sum(after_questions(i, i + 60) for i in range(0, 6000, 60)) < 100 * alone * 1.1


def test_a_pod_changes_a_bounded_number_of_columns():
    """However many questions a pod counts in, those asked last have columns, and no others."""
    counts = PlacedPods(4)
    for i in range(6000):
        counts.count(PodQuery((PodsLike(None, Selector((Requirement("app", "NotIn", (f"x{i}",)),))),)), 4)
    web = PodInfo(make_pod(labels={"app": "web"}))

    assert calls(lambda: counts.add(0, web)) < 5 * MAX_BYTES / LEAST_BYTES


def test_volumes_of_a_pod_are_one_change():
    """Else a pod of thousands of disks makes all who follow the journal start anew."""
    volumes_of, info = PlacedVolumes(), PodInfo(make_pod("placed", **PODS["disks"](4_000)))

    assert calls(lambda: volumes_of.add(0, info)) < 20
    assert 1 == len(volumes_of.changes.since(0))


def test_ports_are_read_once_for_all_pods_of_a_template():
    """PreFilter, the signature and the hint of each event ask for them."""
    placed = make_pod("placed", host_ports=range(1, 8_001))
    host_ports(placed)

    assert calls(lambda: host_ports(placed)) < 10


def test_an_image_is_one_volume_whatever_its_monitors():
    """They are compared only with those of another pod that names the image."""
    info = PodInfo(make_pod("placed", **PODS["monitors of a disk"](4_000)))

    assert 1 == len(info.volumes)
    assert calls(lambda: PlacedVolumes().add(0, info)) < 100


def test_terms_over_labels_that_no_node_has_are_not_filed():
    """A placed pod that names thousands of topology keys costs what one without terms does."""
    counts, info = PlacedPods(8), PodInfo(make_pod(affinity=preferences(4_000)))
    counts.terms.follow_label_keys({HOST}, 1)

    assert calls(lambda: counts.add(0, info)) < 100
    assert calls(lambda: counts.add(0, info, -1)) < 100
    assert not counts.terms.held()


def test_pods_that_share_a_disk_are_found_without_a_look_at_each():
    """A pod of thousands of disks is deleted while another one waits: its hint is asked in the handler."""
    deleted, pod = (make_pod(name, **PODS["monitors of a disk"](4_000)) for name in ("deleted", "waiting"))
    share_disks(pod, deleted)

    assert calls(lambda: share_disks(pod, deleted)) < 100
    assert share_disks(pod, deleted)
