"""Which new nodes make pods fit is what adding them one by one comes to."""

import random
from contextlib import nullcontext

import pytest

from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.config.releases.release import DEFAULT, effective
from berth.objects.node import Node
from berth.simulation.errors import InputError
from berth.simulation.placing import growing_cluster
from berth.simulation.placing.fitting import Objective, would_fit
from berth.simulation.placing.refusals import Refusals
from berth.simulation.placing.shapes import AddableNode
from berth.simulation.reading.inputs import ClusterInput, read_pods
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.would_fit import differences
from tests.hostile.work import calls, growth
from tests.unit.simulation.kit import APART, APP, GANGS, SPREAD, ZONE, cluster, gang, node, pod, written


def shape(tmp_path, name, most=10, price=None, **fields):
    (made,) = cluster(tmp_path, node(name, **fields)).of(Node).values()
    return AddableNode(name, made, most, price)


def fitted(tmp_path, there, pods, shapes, gates=(), *, release=DEFAULT, **options):
    found = cluster(tmp_path, *there) if there else ClusterInput()
    wanted = read_pods(written(tmp_path / "pods.json", *pods), found)
    loaded = load(None, gates=FeatureGates(dict.fromkeys(gates, True), effective(release)))
    return would_fit(found, wanted, shapes, SimulationOptions(loaded), **options)


@pytest.mark.parametrize("seed", range(6))
def test_the_count_is_that_of_one_by_one(tmp_path, seed):
    """On a cluster by chance as many nodes are needed for as many pods as simulations with them come to.

    `python -m tests.benchmarks would_fit --random 100` has further ones.
    """
    assert [] == differences(seed, tmp_path)


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        pytest.param({}, 2, id="by cpu"),
        pytest.param({"affinity": APART}, 5, id="one a node"),
    ],
)
def test_pods_that_are_left_get_nodes(tmp_path, spec, nodes):
    """What fits on the nodes that are there needs no new one."""
    pods = [pod(f"p{i}", labels=APP, **spec) for i in range(6)]

    found = fitted(tmp_path, [node("n0", cpu="1")], pods, [shape(tmp_path, "big", cpu="4")])

    assert (1, {"big": nodes}, 5) == (found.placed, found.shapes[0].nodes, found.shapes[0].placed)


def test_a_shape_that_is_of_no_use(tmp_path):
    """The message about a pod that is left counts the node that did not help; none is said to be needed."""
    found = fitted(tmp_path, [node("n0", cpu="1")], [pod("p", cpu="8")], [shape(tmp_path, "small", cpu="4")])

    assert {} == found.shapes[0].nodes
    assert "0/2 nodes are available: 2 Insufficient cpu." in found.shapes[0].left[0].status.message


def test_spreading_takes_a_mixture(tmp_path):
    """Pods that spread over zones fit with nodes of both zones, and with those of one zone alone do not."""
    shapes = [shape(tmp_path, zone, cpu="2", labels={ZONE: zone}) for zone in ("a", "b")]
    there = [node(f"n{zone}", cpu="100m", labels={ZONE: zone}) for zone in ("a", "b")]
    pods = [pod(f"p{i}", labels=APP, topologySpreadConstraints=[SPREAD]) for i in range(4)]

    found = fitted(tmp_path, there, pods, shapes)

    assert [1, 1] == [each.placed for each in found.shapes]
    assert ({"a": 1, "b": 1}, []) == (found.mixture.nodes, found.mixture.left)


@pytest.mark.parametrize(
    ("objective", "nodes"),
    [
        (Objective.NODES, {"large": 1}),
        (Objective.WASTE, {"medium": 1, "small": 1}),
        (Objective.PRICE, {"small": 3}),
    ],
)
def test_objectives(tmp_path, objective, nodes):
    """The mixture has the fewest nodes, the least waste or the lowest price."""
    shapes = [
        shape(tmp_path, "large", cpu="16", price=9.0),
        shape(tmp_path, "medium", cpu="2", price=2.2),
        shape(tmp_path, "small", cpu="1", price=1.0),
    ]

    found = fitted(tmp_path, [], [pod(f"p{i}") for i in range(3)], shapes, objective=objective)

    assert nodes == found.mixture.nodes


def test_a_mixture_is_no_worse_than_one_shape(tmp_path):
    """Where taking the best next node ends worse than nodes of one shape alone, those are the mixture."""
    shapes = [shape(tmp_path, "three", cpu="3", price=3.0), shape(tmp_path, "four", cpu="4", price=4.4)]

    found = fitted(tmp_path, [], [pod(f"p{i}") for i in range(4)], shapes, objective=Objective.PRICE)

    assert ({"four": 1}, 4.4) == (found.mixture.nodes, found.mixture.price)


def test_as_many_as_may_be(tmp_path):
    """No more nodes of a shape are added than may be."""
    found = fitted(tmp_path, [], [pod(f"p{i}") for i in range(9)], [shape(tmp_path, "one", cpu="1", most=4)])

    assert ({"one": 4}, 5) == (found.shapes[0].nodes, len(found.shapes[0].left))


def test_a_price_is_needed(tmp_path):
    """The lowest price is not asked of shapes that have none."""
    with pytest.raises(InputError, match="shape one: price: found none"):
        fitted(tmp_path, [], [pod("p")], [shape(tmp_path, "one")], objective=Objective.PRICE)


def test_waste_counts_devices(tmp_path):
    """A node whose device no pod asks for is half wasted, though its cpu is all used."""
    gpu, plain = node("gpu", cpu="1"), node("plain", cpu="1")
    for each in (gpu, plain):
        del each["status"]["capacity"]["memory"]
    gpu["status"]["capacity"]["example.com/gpu"] = "1"
    (gpu_node, plain_node) = cluster(tmp_path, gpu, plain).of(Node).values()

    found = fitted(
        tmp_path, [], [pod("p")], [AddableNode("gpu", gpu_node, 1), AddableNode("plain", plain_node, 1)]
    )

    assert [0.5, 0.0] == [each.waste for each in found.shapes]


def test_each_step_waits_its_turn(tmp_path):
    """Building the cluster, every node and every decision are steps that the caller paces."""
    paced = []

    class Turn:
        def __enter__(self):
            paced.append(1)

        def __exit__(self, *_):
            paced.append(-1)

    fitted(tmp_path, [], [pod("p")], [shape(tmp_path, "one", cpu="1", most=1)], pace=Turn)

    assert [1, -1] * (1 + 1 + 2) == paced


def test_a_decision_for_each_pod_and_node(tmp_path):
    """Pods that are all different are tried when they come, on the first node, and where there is room."""
    steps = []
    pods = [pod(f"p{i}", cpu=f"{1000 - i}m") for i in range(8)]

    found = fitted(
        tmp_path, [], pods, [shape(tmp_path, "two", cpu="2")], pace=lambda: nullcontext(steps.append(1))
    )

    assert {"two": 4} == found.shapes[0].nodes
    assert 1 + 8 + (1 + 8) + 3 * (1 + 2) == len(steps)


def test_pods_that_no_node_of_a_shape_takes_are_tried_on_one(tmp_path):
    """Those that ask for other labels are not tried again; one that asks for a name is."""
    steps = []
    elsewhere = [pod(f"e{i}", cpu=f"{i + 1}m", nodeSelector={ZONE: "b"}) for i in range(5)]
    by_name = pod("n", cpu="500m", nodeSelector={"kubernetes.io/hostname": "one-2"})
    asking = [by_name, *elsewhere, *(pod(f"p{i}", cpu=f"{900 + i}m") for i in range(4))]

    found = fitted(
        tmp_path,
        [node("n0", cpu="0")],
        asking,
        [shape(tmp_path, "one", cpu="1", labels={ZONE: "a"})],
        pace=lambda: nullcontext(steps.append(1)),
    )

    assert {"one": 5} == found.shapes[0].nodes
    first, by_two, further, useless = 1 + (1 + 5 + 1), 1 + (1 + 1), 1 + 1, 1
    assert 1 + 10 + first + by_two + further * 3 + useless + 5 == len(steps)


def test_a_shape_that_serves_no_pod_is_tried_once(tmp_path):
    """A mixture leaves a shape out from the first node of it that is of no use."""
    steps = []
    shapes = [shape(tmp_path, "none", cpu="100m"), shape(tmp_path, "one", cpu="1")]

    fitted(tmp_path, [], [pod(f"p{i}") for i in range(3)], shapes, pace=lambda: nullcontext(steps.append(1)))

    none, one = 1 + 1, (1 + 2) + 2 * (1 + 1)
    start, why, best = 1 + 1, 1, 2 * one
    assert start + (none + why) + one + (none + best) == len(steps)


def test_reasons_count_what_was_placed(tmp_path):
    """A pod that was refused before others were placed has the reason that it has with them there."""
    pods = [pod("p0", cpu="3"), pod("p1", cpu="2"), pod("p2", cpu="500m")]
    for each in pods[0::2]:
        each["spec"]["containers"][0]["resources"]["requests"]["memory"] = "40Gi"

    found = fitted(tmp_path, [node("n0", cpu="2500m")], pods, [])

    assert ["default/p0"] == [left.pod.key for left in found.left]
    assert "1 Insufficient cpu, 1 Insufficient memory." in found.left[0].status.message


def test_affinity_among_the_pods(tmp_path):
    """A pod that waits for another one of the request is tried again once that one is placed."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": APP}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    found = fitted(
        tmp_path, [], [pod("p0", affinity=near), pod("p1", labels=APP)], [shape(tmp_path, "two", cpu="2")]
    )

    assert ({"two": 1}, []) == (found.shapes[0].nodes, found.shapes[0].left)


def test_a_gang_takes_all_its_nodes(tmp_path):
    """A gang needs as many nodes as all of its pods take, though the first of them make no pod fit."""
    group, pods = gang("g", 5)

    found = fitted(tmp_path, [group, node("n0", cpu="1")], pods, [shape(tmp_path, "two", cpu="2")], GANGS)

    assert (0, {"two": 2}, 5) == (found.placed, found.shapes[0].nodes, found.shapes[0].placed)
    assert {"two": 2} == found.mixture.nodes


def test_a_gang_that_never_fits(tmp_path):
    """A gang whose pods do not all fit takes no node, and its pods say why."""
    group, pods = gang("g", 5)

    found = fitted(tmp_path, [group], [*pods, pod("p")], [shape(tmp_path, "two", cpu="2", most=2)], GANGS)

    (two,) = found.shapes
    assert ({"two": 1}, 1, 5) == (two.nodes, two.placed, len(two.left))
    assert any("pod group is unschedulable" in left.status.message for left in two.left)


def test_gangs_as_of_1_37(tmp_path):
    """One that does not fit counts its pods; one with pods of another priority than its own is refused."""
    group, pods = gang("g", 2)
    other, urgent = gang("h", 2)
    for each in urgent:
        each["spec"]["priority"] = 5
    shapes = [shape(tmp_path, "one", cpu="1", most=1)]

    found = fitted(tmp_path, [group, other], [*pods, *urgent], shapes, GANGS[:1], release=(1, 37))

    said = {left.status.message for left in found.shapes[0].left}
    assert any("minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in text for text in said)
    assert any("the same priority as the pod group's priority, got 5 and 0" in text for text in said)


def test_the_least_of_a_gang(tmp_path):
    """Pods of a gang beyond its minCount fit one by one."""
    group, pods = gang("g", 5, least=3)

    found = fitted(tmp_path, [group, node("n0", cpu="4")], pods, [shape(tmp_path, "one", cpu="1")], GANGS)

    assert (4, {"one": 1}, 1) == (found.placed, found.shapes[0].nodes, found.shapes[0].placed)


def test_a_gang_in_one_zone(tmp_path):
    """Nodes of the zone count in which there is room for all, not those of the zone that has more now."""
    group, pods = gang("g", 4, schedulingConstraints={"topology": [{"key": ZONE}]})
    there = [node("n0", cpu="3", labels={ZONE: "a"}), node("n1", cpu="100m", labels={ZONE: "b"})]

    found = fitted(
        tmp_path,
        [group, *there],
        pods,
        [
            shape(tmp_path, "b", cpu="1", labels={ZONE: "b"}),
            shape(tmp_path, "a", cpu="1", labels={ZONE: "a"}),
        ],
        (*GANGS, "TopologyAwareWorkloadScheduling"),
    )

    assert [{"b": 4}, {"a": 1}] == [each.nodes for each in found.shapes]
    assert {"a": 1} == found.mixture.nodes


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param(gang("none", 2)[1], 'pod group "none" to appear', id="no such group"),
        pytest.param(gang("g", 2)[1], "minCount pods from a gang to appear", id="too few pods"),
    ],
)
def test_gangs_that_wait(tmp_path, pods, reason):
    """Pods of a gang that is not complete are left, and say what they wait for."""
    group, _ = gang("g", 3)

    found = fitted(tmp_path, [group, node("n0")], pods, [], GANGS)

    assert 0 == found.placed
    assert all(reason in left.status.message for left in found.left)


def test_groups_without_the_gate(tmp_path):
    """A scheduler without the gate GenericWorkload decides on each pod alone, and so is it counted."""
    group, pods = gang("g", 5)

    assert 4 == fitted(tmp_path, [group, node("n0")], pods, []).placed


@pytest.mark.parametrize("kinds", [1, 1000], ids=["equal pods", "different pods"])
@pytest.mark.parametrize("shapes", [(2,), (2, 4)])
def test_the_work_grows_with_the_pods(tmp_path, shapes, kinds):
    """Each new node costs what is decided on it, however many pods are left."""
    found = cluster(tmp_path, node("n0", cpu="0"))
    grown = [shape(tmp_path, f"cpu{cpu}", most=1000, cpu=str(cpu)) for cpu in shapes]

    def work(count):
        path = written(
            tmp_path / f"{count}.json", *(pod(f"p{i}", labels={"app": f"a{i % kinds}"}) for i in range(count))
        )
        pods = read_pods(path, found)
        return lambda: would_fit(found, pods, grown, SimulationOptions(load(None)))

    calls(work(10))
    assert growth(work, 20) < 1.15


class Hopeful(Refusals):
    """Whatever happens may help any pod, so that all are tried again and again, on all nodes."""

    def may_be_helped(self, profile, status):
        del profile, status
        return True


EXTENDED = "example.com/gpu"


def a_pod_by_chance(number, chance):
    """Some want devices, some a zone, some keep apart or near, some spread; requests are of few sizes."""
    made = pod(
        f"p{number}", cpu=chance.choice(["0", "500m", "1", "1500m", "3"]), labels=chance.choice([APP, {}])
    )
    spec = made["spec"]
    requests = spec["containers"][0]["resources"]["requests"]
    if chance.random() < 0.3:
        requests["memory"] = chance.choice(["20Gi", "40Gi"])
    if chance.random() < 0.2:
        amount = chance.choice(["1", "2"])
        requests[EXTENDED] = amount
        spec["containers"][0]["resources"]["limits"] = {EXTENDED: amount}
    if chance.random() < 0.3:
        spec["nodeSelector"] = {ZONE: chance.choice("ab")}
    if chance.random() < 0.1:
        spec["nodeSelector"] = {"kubernetes.io/hostname": f"{chance.choice('xyz')}-{chance.randint(0, 3)}"}
    if chance.random() < 0.2:
        spec["affinity"] = APART
    if chance.random() < 0.2:
        spec["topologySpreadConstraints"] = [SPREAD]
    if chance.random() < 0.2:
        spec["priority"] = chance.randint(0, 3)
    return made


def a_node_by_chance(name, chance):
    """With devices or not, and in one of two zones."""
    made = node(name, cpu=chance.choice("1248"), labels={ZONE: chance.choice("ab")})
    if chance.random() < 0.4:
        made["status"]["capacity"][EXTENDED] = "2"
    if chance.random() < 0.2:
        made["spec"]["taints"] = [{"key": "dedicated", "effect": "NoSchedule"}]
    return made


@pytest.mark.parametrize("seed", range(25))
def test_pods_that_are_not_tried_would_be_refused(tmp_path, monkeypatch, seed):
    """The answer is the one of trying every pod that is left on all nodes, once for each node."""
    chance = random.Random(seed)
    there = [a_node_by_chance(f"n{i}", chance) for i in range(3)]
    models = cluster(tmp_path, *(a_node_by_chance(name, chance) for name in "xyz")).of(Node).values()
    pods = [a_pod_by_chance(i, chance) for i in range(chance.randint(1, 14))]
    shapes = [AddableNode(each.name, each, 10) for each in models]

    found = said(fitted(tmp_path, there, pods, shapes))
    monkeypatch.setattr(growing_cluster, "Refusals", Hopeful)

    assert said(fitted(tmp_path, there, pods, shapes)) == found


def said(fit):
    """All that an answer has."""
    added = [(a.nodes, a.placed, reasons(a.left), a.waste) for a in (*fit.shapes, fit.mixture)]
    return fit.placed, reasons(fit.left), added


def reasons(left):
    return [(each.pod.key, each.status.message) for each in left]
