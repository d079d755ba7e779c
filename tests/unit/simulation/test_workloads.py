"""Pods of a trace's owners come, are replaced and go as the controllers of Kubernetes have it."""

import random
from dataclasses import dataclass, field

import pytest

from berth.config.loading import load
from berth.objects.pods.pod import Pod
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.timeline import ARRIVAL, DURATION
from berth.simulation.running.engine import after
from berth.simulation.running.options import SimulationOptions
from berth.simulation.what_if.changes import changed, read_changes
from tests.unit.simulation.kit import ZONE, node, written
from tests.unit.simulation.traces import deployment, event, owner, template, trace

OLD, NEW = "1", "2"
"""Requests of cpu, by which templates are told apart."""


@dataclass
class Seen:
    """A handler that notes what becomes of pods, and passes everything on."""

    handler: object
    clock: object
    began: float
    pods: dict = field(default_factory=dict)
    """Those that are there now: cpu and node by name."""
    moments: list = field(default_factory=list)
    """What was there after each change, and when."""

    @property
    def synced(self):
        return self.handler.synced

    def on_add(self, pod):
        self.handler.on_add(pod)
        self._note(pod)

    def on_update(self, old, pod):
        self.handler.on_update(old, pod)
        self._note(pod)

    def on_delete(self, pod):
        self.handler.on_delete(pod)
        self._note(pod, there=False)

    def on_synced(self):
        self.handler.on_synced()

    def _note(self, pod, *, there=True):
        if there:
            self.pods[pod.name] = (pod.spec.containers[0].resources.requests["cpu"], pod.node_name)
        else:
            del self.pods[pod.name]
        self.moments.append((round(self.clock.wall() - self.began, 3), dict(self.pods)))

    def at(self, seconds):
        """What was there when everything of that moment had happened."""
        return next((pods for at, pods in reversed(self.moments) if at <= seconds), {})


def seen(tmp_path, nodes, *events, what_if=(), **fields):
    """What became of the pods of a trace on these nodes."""
    path = trace(tmp_path / "t.sktrace", *events, **fields)
    found, changes = read_cluster([path, written(tmp_path / "nodes.json", *nodes)]), read_changes(what_if)
    handlers = []

    def begin(simulation):
        held = simulation.state.handlers
        handlers.append(Seen(held[Pod], simulation.clock, simulation.clock.wall()))
        held[Pod] = handlers[0]

    async def end(simulation):
        del simulation

    after(changed(found, changes), SimulationOptions(load(None), changes=changes), end, before=begin)
    return handlers[0]


def templates(pods):
    return sorted(cpu for cpu, _ in pods.values())


def nodes_of(pods):
    """Where pods are; of one without a node, nothing."""
    return sorted(name for _, name in pods.values())


def test_an_owner_is_scaled_and_deleted(tmp_path):
    """The pods without a node leave first, and then the youngest."""
    found = seen(
        tmp_path,
        [node("n", cpu="2")],
        event(0, deployment(1)),
        event(5, deployment(4)),
        event(7, deployment(2)),
        event(8, deployment(1)),
        event(9, deleted=[deployment(1)]),
    )

    assert {"web-0": ("1", "n"), "web-1": ("1", "n"), "web-2": ("1", ""), "web-3": ("1", "")} == found.at(6)
    assert [{"web-0", "web-1"}, {"web-0"}, set()] == [set(found.at(at)) for at in (7, 8, 9)]


def test_pods_that_end_are_not_made_anew(tmp_path):
    """A trace says how long they ran."""
    lives = {("apps/v1.Deployment", "traced/web"): [{"Finished": [1_710_892_138, 1_710_892_148]}, "Empty"]}

    found = seen(tmp_path, [node("n")], event(0, deployment(2)), event(99), lives=lives)

    assert [2, 0] == [len(found.at(at)) for at in (9, 11)]


@pytest.mark.parametrize("seed", range(20))
def test_a_rolling_update_keeps_within_its_bounds(tmp_path, seed):
    """At no moment are there too many pods or too few of them on nodes, and in the end all are new."""
    chance = random.Random(seed)
    replicas, surge, unavailable = chance.randint(1, 9), chance.randint(0, 3), chance.randint(0, 3)
    strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    # New pods ask for more, and one too many fits at least: the others wait until old ones have left.
    room = (replicas + bool(surge)) * int(NEW) + chance.randint(0, 3)
    first, then = deployment(replicas, strategy, cpu=OLD), deployment(replicas, strategy, cpu=NEW)

    found = seen(tmp_path, [node("n", cpu=str(room))], event(0, first), event(5, then))

    rollout = [pods for at, pods in found.moments if at >= 5]
    least = replicas - (unavailable or (0 if surge else 1))
    assert all(len(pods) <= replicas + surge for pods in rollout)
    assert all(sum(1 for _, name in pods.values() if name) >= least for pods in rollout)
    assert [NEW] * replicas == templates(found.pods)


def test_a_rollout_stops_at_new_pods_that_fit_nowhere(tmp_path):
    """Of four, one may be too many and one too few: three old ones stay beside two that wait."""
    there = [node("n", cpu="4")]

    found = seen(tmp_path, there, event(0, deployment(4)), event(5, deployment(4, cpu="9")))

    assert [OLD] * 3 + ["9"] * 2 == templates(found.pods)


def test_a_rollout_is_undone(tmp_path):
    """The template of before has its pods again, and those that wait leave."""
    there = [node("n", cpu="4")]
    events = [event(0, deployment(4)), event(5, deployment(4, cpu="9")), event(9, deployment(4))]

    found = seen(tmp_path, there, *events)

    assert [OLD] * 4 == templates(found.pods)
    assert {"web-0", "web-1", "web-2"} < set(found.pods)


def test_a_rollout_ends_where_pods_are_not_to_be_replaced_any_more(tmp_path):
    """Those of both templates stay, and later ones count among them."""

    def web(cpu, replicas, **strategy):
        return owner("StatefulSet", "web", replicas=replicas, template=template(cpu), updateStrategy=strategy)

    never = {"type": "OnDelete"}
    events = [event(0, web(OLD, 3)), event(5, web("9", 3)), event(9, web("9", 4, **never))]

    found = seen(tmp_path, [node("n", cpu="4")], *events)

    assert [OLD, OLD, "9", "9"] == templates(found.pods)


def test_to_recreate_is_to_remove_all_first(tmp_path):
    """There is a moment without a pod."""
    strategy = {"type": "Recreate"}
    first, then = deployment(3, strategy), deployment(3, strategy, cpu=NEW)

    found = seen(tmp_path, [node("n", cpu="16")], event(0, first), event(5, then))

    assert {} in [pods for at, pods in found.moments if at == 5]
    assert [NEW] * 3 == templates(found.pods)


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [("ReplicaSet", {}), ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}})],
)
def test_pods_that_are_not_replaced_stay(tmp_path, kind, strategy):
    """The new template is for pods that come later."""
    first = owner(kind, "web", replicas=2, template=template(OLD), **strategy)
    then = owner(kind, "web", replicas=3, template=template(NEW), **strategy)

    found = seen(tmp_path, [node("n", cpu="16")], event(0, first), event(5, then))

    assert [OLD, OLD, NEW] == templates(found.pods)


def test_a_stateful_set_replaces_its_pods_one_by_one(tmp_path):
    """The youngest goes first; the next one once there is a node for the pod in its place."""
    first = owner("StatefulSet", "web", replicas=3, template=template(OLD))
    then = owner("StatefulSet", "web", replicas=3, template=template("9"))

    found = seen(tmp_path, [node("n", cpu="4")], event(0, first), event(5, then))

    assert [OLD, OLD, "9"] == templates(found.pods)
    assert {"web-0", "web-1"} < set(found.pods)


# DaemonSets.


def daemons(cpu=OLD, strategy=None, **spec):
    """A DaemonSet with these fields in its pods' spec."""
    made = template(cpu)
    made["spec"] |= spec
    return owner("DaemonSet", "agent", template=made, updateStrategy=strategy)


def tainted(name, key, effect, **fields):
    return node(name, taints=[{"key": key, "effect": effect}], **fields)


def test_a_daemon_set_has_a_pod_on_each_node_that_it_is_meant_for(tmp_path):
    """Cordoned nodes and what a kubelet reports are tolerated; other taints and labels count."""
    there = [
        node("plain", labels={ZONE: "a"}),
        node("elsewhere", labels={ZONE: "b"}),
        tainted("dedicated", "team", "NoSchedule", labels={ZONE: "a"}),
        tainted("full-disk", "node.kubernetes.io/disk-pressure", "NoSchedule", labels={ZONE: "a"}),
        tainted("cordoned", "node.kubernetes.io/unschedulable", "NoSchedule", labels={ZONE: "a"}),
        tainted("preferred", "team", "PreferNoSchedule", labels={ZONE: "a"}),
        tainted("no-network", "node.kubernetes.io/network-unavailable", "NoSchedule", labels={ZONE: "a"}),
    ]

    found = seen(tmp_path, there, event(0, daemons(nodeSelector={ZONE: "a"})))
    on_host = seen(tmp_path, there, event(0, daemons(nodeSelector={ZONE: "a"}, hostNetwork=True)))

    assert ["cordoned", "full-disk", "plain", "preferred"] == nodes_of(found.pods)
    assert {"no-network"} == set(nodes_of(on_host.pods)) - set(nodes_of(found.pods))


def test_pods_of_a_daemon_set_follow_the_nodes(tmp_path):
    """A node that comes later gets one, and one that goes takes its own along."""
    there = [node("first", annotations={DURATION: "20"}), node("later", annotations={ARRIVAL: "10"})]

    found = seen(tmp_path, there, event(0, daemons()), event(40, deleted=[daemons()]))

    moments = [found.at(at) for at in (5, 15, 25, 40)]
    assert [["first"], ["first", "later"], ["later"], []] == [nodes_of(pods) for pods in moments]


def test_a_pod_of_a_daemon_set_waits_for_its_node(tmp_path):
    """It goes to no other one, however much room there is."""
    found = seen(tmp_path, [node("small", cpu="1"), node("large", cpu="9")], event(0, daemons("2")))

    assert ["", "large"] == nodes_of(found.pods)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param("taint n0 team=x:NoSchedule", ["n0", "n1"], id="running pods stay"),
        pytest.param("taint n0 team=x:NoExecute", ["n1"], id="they do not tolerate it"),
        pytest.param("label n0 tier-", ["n1"], id="another label"),
        pytest.param("remove-node n0", ["n1"], id="the node is gone"),
        pytest.param("drain n0", ["n0", "n1"], id="another one comes at once"),
        pytest.param("add-node n0 x2", ["n0", "n0-copy-0", "n0-copy-1", "n1"], id="nodes that are added"),
    ],
)
def test_a_daemon_set_follows_changes_of_nodes(tmp_path, change, left):
    """Whatever changes a node in the midst, its pod comes or goes."""
    there = [node(f"n{i}", labels={"tier": "web"}) for i in range(2)]

    found = seen(
        tmp_path, there, event(0, daemons(nodeSelector={"tier": "web"})), what_if=[f"after 9 {change}"]
    )

    assert (["n0", "n1"], left) == (nodes_of(found.at(8)), nodes_of(found.pods))


@pytest.mark.parametrize(
    ("strategy", "cpus"),
    [
        pytest.param(None, [OLD, OLD, OLD, "9"], id="one at a time"),
        pytest.param({"rollingUpdate": {"maxUnavailable": "50%"}}, [OLD, OLD, "9", "9"], id="half of them"),
        pytest.param({"type": "OnDelete"}, [OLD] * 4, id="on delete"),
    ],
)
def test_a_daemon_set_replaces_its_pods(tmp_path, strategy, cpus):
    """As many may be without their new pod as it says; those that fit nowhere hold up the rest."""
    there = [node(f"n{i}") for i in range(4)]

    stuck = seen(tmp_path, there, event(0, daemons(OLD, strategy)), event(5, daemons("9", strategy)))
    whole = seen(tmp_path, there, event(0, daemons(OLD, strategy)), event(5, daemons(NEW, strategy)))

    assert cpus == templates(stuck.pods)
    assert [NEW if "9" in cpus else OLD] * 4 == templates(whole.pods)
    assert ["n0", "n1", "n2", "n3"] == nodes_of(whole.pods)


def test_a_rollout_of_a_daemon_set_is_undone(tmp_path):
    """Pods that were not replaced yet stay, and the one that fits nowhere leaves for one of before."""
    there = [node(f"n{i}") for i in range(3)]

    found = seen(tmp_path, there, event(0, daemons()), event(5, daemons("9")), event(9, daemons()))

    assert [OLD] * 3 == templates(found.pods)
    assert {"agent-1", "agent-2"} < set(found.pods)
