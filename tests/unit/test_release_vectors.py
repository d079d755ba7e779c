"""A small case for each rule in which releases differ, and what each release makes of it."""

import msgspec
import pytest
from click.testing import CliRunner

from berth.cache.cache import Cache
from berth.commands.deschedule import deschedule
from berth.commands.simulate import simulate
from berth.config.feature_gates import FeatureGates
from berth.config.releases.release import RELEASES, effective
from berth.config.releases.rules import RULES
from berth.framework.cluster_event import EventResource, QueueingHint
from berth.framework.queueing.object_events import pod_events
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_decoding import decode_pod
from berth.objects.pods.pod_spec import Container, TopologySpreadConstraint
from berth.out_of_tree.connections.event_interest import actions_of_change
from berth.plugins.image_locality import ImageLocality
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.pod_topology_spread import PodTopologySpread
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_plugin
from berth.testing.storage import make_csi_driver
from berth.testing.verdicts import feasible, reasons, scores
from tests.unit.plugins.dynamic_resources.kit import (
    Cluster,
    claiming,
    device,
    make_claim,
    make_slice,
    request,
)
from tests.unit.plugins.test_node_volume_limits import DRIVER, NODES, bound_claims, limited, user
from tests.unit.preemption.kit import NOW, budget, node, placed, preemptor, stage

IN_36, IN_37, IN_38 = RELEASES


def container(name, cpu):
    """A container that asks for that much CPU."""
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}}


def status(name, allocated, held):
    """What the kubelet says of a container."""
    cpu = {"requests": {"cpu": held}}
    return {"name": name, "allocatedResources": {"cpu": allocated}, "resources": cpu}


def resizing(*, infeasible=False, done=False) -> Pod:
    """Container a grows from one CPU to two, and b shrinks from two to one."""
    kubelet = [status("a", "1", "1"), status("b", "2", "2")]
    if done:
        kubelet = [status("a", "2", "2"), status("b", "1", "1")]
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {"nodeName": "n", "containers": [container("a", "2"), container("b", "1")]},
        "status": {
            "containerStatuses": kubelet,
            "conditions": [pending] if infeasible else [],
        },
    }
    return decode_pod(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("release", "infeasible", "cores"),
    [
        (IN_36, False, 4),
        (IN_37, False, 3),
        (IN_38, False, 3),
        (IN_36, True, 3),
        (IN_37, True, 3),
        (IN_38, True, 3),
    ],
)
def test_a_pod_that_is_being_resized(release, infeasible, cores):
    """It counts with the largest sum over its containers; up to 1.36 with the sum of their largest."""
    cache = Cache(resizes_count_by_pod=RULES[release].resizes_count_by_pod)
    cache.add_pod(resizing(infeasible=infeasible))

    (info,) = cache.node_info("n").pods.values()
    assert {"cpu": 1000 * cores} == info.requests


@pytest.mark.parametrize(
    ("release", "event", "hint"),
    [
        (IN_36, "AssignedPodUpdatePodScaleDown", QueueingHint.QUEUE),
        (IN_37, "AssignedPodUpdate", QueueingHint.SKIP),
        (IN_38, "AssignedPodUpdate", QueueingHint.SKIP),
    ],
)
def test_a_resize_that_is_done(release, event, hint):
    """It frees what the release counted on top: from 1.37 on nothing, so that no pod is woken."""
    before, after, rules = resizing(), resizing(done=True), RULES[release]
    plugin = make_plugin(NodeResourcesFit, release=release)
    (of_pods,) = [each for each in plugin.events_to_register() if each.event.resource == EventResource.POD]

    (found,) = pod_events(before, after, resizes_count_by_pod=rules.resizes_count_by_pod)

    assert event == found.label
    assert found.action == actions_of_change(before, after, resizes_count_by_pod=rules.resizes_count_by_pod)
    assert hint is of_pods.hint(make_pod("waiting", requests={"cpu": "1"}), before, after)


@pytest.mark.parametrize("labels", [{"app": "web"}, {}])
@pytest.mark.parametrize(("release", "free"), [(IN_36, {"a", "b"}), (IN_37, {"a", "b"}), (IN_38, {"b"})])
async def test_a_budget_with_an_empty_selector(release, free, labels):
    """From 1.38 on it protects all pods of its namespace, also those without labels."""
    pods = [
        placed("one", "4", on="a", namespace="guarded", labels=labels),
        placed("two", "4", on="b", labels=labels),
    ]
    budgets = [budget(selector={}, namespace="guarded")]
    here = stage([node("a"), node("b")], pods, budgets=budgets, release=release)
    harmless = (await here.preemption.candidates(await here.request(preemptor()))).found

    assert free == {each.node_name for each in harmless if not each.pdb_violations}


@pytest.mark.parametrize(("release", "fits"), [(IN_36, ["a", "b"]), (IN_37, ["a", "b"]), (IN_38, ["b"])])
def test_spreading_with_an_empty_selector(release, fits):
    """From 1.38 on it counts all pods of the namespace; before, none."""
    nodes = [make_node(name, labels={"zone": name}) for name in ("a", "b")]
    there = [make_pod(f"there-{i}", node_name="a") for i in range(3)]
    even = TopologySpreadConstraint(1, "zone", "DoNotSchedule", label_selector=LabelSelector())
    plugin = make_plugin(PodTopologySpread, release=release)

    assert fits == feasible(plugin, make_pod(topology_spread_constraints=(even,)), nodes, there)


FOUND = "preemption: found a potential placement for pod on node n0, preempting 2 victims"


@pytest.mark.parametrize(("release", "text"), [(IN_36, ""), (IN_37, FOUND), (IN_38, FOUND)])
async def test_what_a_preemptor_is_told(release, text):
    """From 1.37 on its message names the node and counts the victims."""
    here = stage([node()], [placed("v", "2"), placed("w", "2")], release=release)

    assert text == (await here.preempt(preemptor())).status.message


@pytest.mark.parametrize(
    ("release", "order"), [(IN_36, ["n", "o"]), (IN_37, ["n", "o"]), (IN_38, ["o", "n"])]
)
async def test_a_victim_that_has_not_started(release, order):
    """From 1.38 on it is less important than one that will start later than now; before, it starts now."""
    pods = [placed("o", "2", started=NOW + 9), placed("n", "2")]
    here = stage([node()], pods, release=release)

    assert {"n0": order} == await here.victims(preemptor())


@pytest.mark.parametrize(("release", "gone"), [(IN_36, "b"), (IN_37, "b"), (IN_38, "c")])
@pytest.mark.parametrize("started", [None, NOW - 9])
async def test_victims_that_started_together(release, gone, started):
    """From 1.38 on the one with the greater UID goes first; before, their order on the node decides."""
    pods = [placed(name, "2", started=started) for name in ("c", "b")]
    here = stage([node()], pods, release=release)

    assert {"n0": [gone]} == await here.victims(preemptor("2"))


@pytest.mark.parametrize(("release", "named"), [(IN_36, ("a", "b")), (IN_37, ()), (IN_38, ())])
def test_a_configuration_for_all_requests(release, named):
    """From 1.37 on it is allocated without their names, which means the same."""
    opaque = {"opaque": {"driver": "gpu.example", "parameters": {}}}
    claim = make_claim(
        requests=[request("a"), request("b")],
        config=[{"requests": ["a", "b"], **opaque}, {"requests": ["a"], **opaque}],
    )
    slices = [make_slice("s", [device("d0"), device("d1")], node="n0")]
    cluster = Cluster(slices=slices, claims=[claim], release=release)
    cluster.reserved(claiming("c0"), "n0")
    (found,) = (each.allocation for each in cluster.listers.claim_tracker.all_in_flight())

    assert [named, ("a",)] == [each.requests for each in found.devices.config]


@pytest.mark.parametrize(("release", "fits"), [(IN_36, True), (IN_37, False), (IN_38, False)])
def test_a_driver_that_is_not_on_the_node(release, fits):
    """From 1.37 on, by default, a driver that asks for it has to be installed."""
    objects = [*bound_claims("a"), make_csi_driver(DRIVER, prevent_pod_scheduling_if_missing=True)]

    assert fits == (not reasons(limited(5, *objects, release=release), user("p", "a"), NODES))


@pytest.mark.parametrize(("flags", "release"), [([], "1.36"), (["--release=1.37"], "1.37")])
def test_a_simulation_says_which(tmp_path, flags, release):
    """Its outcome names the release that decided."""
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")
    found = CliRunner().invoke(simulate, ["run", str(tmp_path / "node.yaml"), *flags])

    assert f"as kube-scheduler {release}" in found.output.splitlines()[0], found.output


POLICY = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"
COMMANDS = {
    "run": [simulate, "run", "{cluster}"],
    "fill": [simulate, "fill", "{pod}", "{cluster}"],
    "compare": [simulate, "compare", "default", "--input={cluster}"],
    "serve": [simulate, "serve", "{cluster}", "--listen=0.0.0.0:0"],
    "deschedule": [deschedule, "{cluster}", "--policy={policy}"],
}


@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("1.37", "unrecognized feature gate: GangScheduling"),
        ("1.30", "1.30"),
    ],
)
def test_commands_take_a_release(tmp_path, command, release, said):
    """Each command that decides does so as the release that is named; here, by its gates."""
    nothing = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
    texts = {"cluster": nothing, "pod": nothing, "policy": POLICY}
    files = {name: tmp_path / f"{name}.yaml" for name in texts}
    for name, file in files.items():
        file.write_text(texts[name])
    verb, *arguments = COMMANDS[command]
    flags = [f"--release={release}", "--feature-gates=GenericWorkload=true,GangScheduling=true"]
    found = CliRunner().invoke(verb, [each.format(**files) for each in arguments] + flags)

    assert (2, True) == (found.exit_code, said in found.output), found.output


@pytest.mark.parametrize("release", RELEASES)
def test_gates_by_default(release):
    """What is on by default changes what is decided without any setting."""
    gates = FeatureGates(version=effective(release))
    newer = release != IN_36

    for gate in ("StorageCapacityScoring", "VolumeLimitScaling", "DRADeviceTaintRules"):
        assert newer == gates.enabled(gate)


@pytest.mark.parametrize(("release", "score"), [(IN_36, 59), (IN_37, 29), (IN_38, 29)])
def test_image_volumes(release, score):
    """From 1.37 on a volume raises what can be reached at most, as a container does."""
    volume = {"name": "v", "image": {"reference": "a:1"}}
    pod = make_pod(containers=[Container("c", "a:1")], volumes=(volume,))
    nodes = [make_node("n", images={"a:1": 300 * 2**20})]

    assert {"n": score} == scores(make_plugin(ImageLocality, release=release), pod, nodes)
