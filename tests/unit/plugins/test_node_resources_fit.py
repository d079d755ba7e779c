import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.config.plugin_args import NodeResourcesFitArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.framework.mirrors.listers import Listers
from berth.framework.status import Code
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.devices import DeviceClass, DeviceClassSpec
from berth.objects.pods.pod_spec import Container, Resources
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_resources_fit.filtering import FitRequest
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import feasible, reasons, verdicts

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
GPU = "example.com/gpu"


def node(name="n0", **offer):
    return make_node(name, allocatable={"cpu": "10m", "memory": "20", "pods": "32", **named(offer)})


def named(amounts):
    return {{"gpu": GPU, "disk": "ephemeral-storage"}.get(k, k): v for k, v in amounts.items()}


def asking(name="p0", node_name="", **amounts):
    return make_pod(name, requests=named(amounts), node_name=node_name)


@pytest.mark.parametrize(
    ("pod", "used", "expected"),
    [
        pytest.param(asking(), {"cpu": "10m", "memory": "20"}, (), id="asks for nothing of a full node"),
        pytest.param(asking(cpu="1m", memory="1"), {"cpu": "5m", "memory": "5"}, (), id="fits"),
        pytest.param(asking(cpu="5m"), {"cpu": "5m"}, (), id="fits exactly"),
        pytest.param(asking(cpu="1m"), {"cpu": "10m"}, ("Insufficient cpu",), id="no cpu left"),
        pytest.param(asking(memory="2"), {"memory": "19"}, ("Insufficient memory",), id="no memory left"),
        pytest.param(
            asking(cpu="1m", memory="1"),
            {"cpu": "10m", "memory": "20"},
            ("Insufficient cpu", "Insufficient memory"),
            id="both",
        ),
        pytest.param(asking(memory="1"), {"cpu": "99m"}, (), id="overcommitted in something else"),
        pytest.param(asking(gpu="0"), {}, (), id="none of a scalar"),
    ],
)
def test_filter(pod, used, expected):
    """A pod fits where every resource that it asks for is left in that amount."""
    holder = asking("holder", "n0", **used)

    rejected = {"n0": expected} if expected else {}
    assert rejected == reasons(make_plugin(NodeResourcesFit), pod, [node()], [holder])


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=4), st.integers(0, 3))
def test_one_resource_at_a_time(offers, wanted):
    """All resources together give the codes that they give one after the other, as beside delegated ones."""
    there = [
        node(f"n{i}", cpu=f"{cpu}m", gpu=str(gpu), pods=str(pods))
        for i, (cpu, gpu, pods) in enumerate(offers)
    ]
    placed = [asking(f"p{i}", f"n{i}", cpu="1m", gpu="1") for i in range(len(there))]
    requests, nodes = {"cpu": 1, "memory": 2, GPU: wanted}, table(there, placed)
    together, apart = (
        FitRequest(requests),
        FitRequest(requests, delegated=frozenset({"example.com/not-requested"})),
    )

    assert apart.codes(nodes).tolist() == together.codes(nodes).tolist()


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        pytest.param(asking(cpu="6m"), Code.UNSCHEDULABLE, id="would fit if it were empty"),
        pytest.param(asking(cpu="11m"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, id="never fits"),
        pytest.param(
            asking(cpu="6m", memory="21"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, id="one of two never fits"
        ),
        pytest.param(asking(gpu="1"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, id="a scalar that no node offers"),
    ],
)
def test_code(pod, code):
    """What exceeds the empty node is beyond preemption's help."""
    nodes = table([node()], [asking("holder", "n0", cpu="5m")])

    assert code is verdicts(make_plugin(NodeResourcesFit), pod, nodes)["n0"].code


def test_too_many_pods():
    """Every pod counts as one, and a node that says nothing of pods takes none."""
    full, closed = make_node("n0", allocatable={"pods": "1"}), make_node("n1", allocatable={"cpu": "1"})
    found = verdicts(make_plugin(NodeResourcesFit), asking(), table([full, closed], [asking("holder", "n0")]))

    assert [("Too many pods",), ("Too many pods",)] == [status.reasons for status in found.values()]
    assert {Code.UNSCHEDULABLE} == {status.code for status in found.values()}


def test_all_reasons_at_once():
    """A node is turned down for everything that it lacks, however many resources that are."""
    scalars = {f"example.com/r{i}": "1" for i in range(20)}
    pod = make_pod(requests={"cpu": "11m", "ephemeral-storage": "1", **scalars})
    expected = {"Insufficient cpu", "Insufficient ephemeral-storage"} | {f"Insufficient {k}" for k in scalars}

    assert expected == set(reasons(make_plugin(NodeResourcesFit), pod, [node()])["n0"])


@given(st.permutations(["example.com/a", GPU, "ephemeral-storage", "memory", "cpu"]))
def test_order_of_reasons(asked):
    """Reasons have one order, whichever container asks for what."""
    pod = make_pod(requests=dict.fromkeys(asked, "100"))
    in_order = ("cpu", "memory", "ephemeral-storage", "example.com/a", GPU)
    expected = tuple(f"Insufficient {name}" for name in in_order)

    assert {"n0": expected} == reasons(make_plugin(NodeResourcesFit), pod, [node()])


@pytest.mark.parametrize(
    ("args", "pod", "fits"),
    [
        (NodeResourcesFitArgs(), asking(gpu="1"), False),
        (NodeResourcesFitArgs(ignored_resources=(GPU,)), asking(gpu="1"), True),
        (NodeResourcesFitArgs(ignored_resource_groups=("example.com",)), asking(gpu="1"), True),
        (NodeResourcesFitArgs(ignored_resource_groups=("example",)), asking(gpu="1"), False),
        (
            NodeResourcesFitArgs(ignored_resources=("hugepages-2Mi",)),
            make_pod(requests={"hugepages-2Mi": "2Mi"}),
            False,
        ),
    ],
)
def test_ignored(args, pod, fits):
    """Extended resources can be left to an extender, by name or by group; nothing else can."""
    assert fits == bool(feasible(make_plugin(NodeResourcesFit, args), pod, [node()]))


def test_init_containers():
    """The largest init container counts where it exceeds the sum of the others."""
    init = Container("init", resources=Resources({"cpu": "11m"}))

    assert {"n0": ("Insufficient cpu",)} == reasons(
        make_plugin(NodeResourcesFit),
        make_pod(requests={"cpu": "1m"}, init_containers=(init,)),
        [node()],
    )


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(asking("o", "n1"), None, QUEUE, id="placed pod goes"),
        pytest.param(make_pod("o", nominated_node_name="n1"), None, QUEUE, id="nominated pod goes"),
        pytest.param(asking("o"), None, SKIP, id="waiting pod goes"),
        pytest.param(asking("o", cpu="2m"), asking("o", cpu="1m"), SKIP, id="waiting pod shrinks"),
        pytest.param(asking("o", "n1", cpu="2m"), asking("o", "n1", cpu="1m"), QUEUE, id="in what it needs"),
        pytest.param(
            asking("o", "n1", memory="2"), asking("o", "n1", memory="1"), SKIP, id="in something else"
        ),
        pytest.param(asking("mine", cpu="2m"), asking("mine", cpu="1m"), QUEUE, id="the pod itself"),
    ],
)
def test_pod_hint(old, new, hint):
    """A pod helps when it leaves a node, or takes less of what the waiting one needs."""
    on_pod, *_ = make_plugin(NodeResourcesFit).events_to_register()

    assert hint == on_pod.hint(asking("mine", cpu="1m"), old, new)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, node(), QUEUE, id="large enough"),
        pytest.param(None, node(cpu="1m"), SKIP, id="too small"),
        pytest.param(None, node(pods="0"), SKIP, id="takes no pods"),
        pytest.param(node(cpu="4m"), node(cpu="6m"), QUEUE, id="grows in the right thing"),
        pytest.param(node(cpu="1m"), node(cpu="4m"), SKIP, id="grows, but not enough"),
        pytest.param(node(), node(memory="40"), SKIP, id="grows in something else"),
        pytest.param(node(), node(cpu="6m"), SKIP, id="shrinks"),
        pytest.param(node(pods="1"), node(pods="2"), QUEUE, id="takes more pods"),
    ],
)
def test_node_hint(old, new, hint):
    """A node helps when the pod would fit on it, and it is new or grew in what the pod needs."""
    _, on_node, *_ = make_plugin(NodeResourcesFit).events_to_register()

    assert hint == on_node.hint(asking(cpu="5m"), old, new)


def test_node_hint_counts_ignored_resources():
    """What the filter ignores keeps the pod asleep all the same, as upstream has it."""
    args = NodeResourcesFitArgs(ignored_resources=(GPU,))
    _, on_node, *_ = make_plugin(NodeResourcesFit, args).events_to_register()

    assert SKIP == on_node.hint(asking(gpu="1"), None, node())


def backed(name=GPU):
    listers = Listers()
    listers.device_classes.put(
        DeviceClass(ObjectMeta(name="gpu"), DeviceClassSpec(extended_resource_name=name))
    )
    return listers


def test_devices_stand_in_for_missing_resources():
    """A resource that a device class backs is checked only where the node offers some itself (5.8)."""
    pod = asking(gpu="2")
    nodes = [make_node("none"), make_node("few", allocatable={"cpu": "4", "pods": "9", GPU: "1"})]

    assert ["none"] == feasible(make_plugin(NodeResourcesFit, listers=backed()), pod, nodes)
    off = make_plugin(NodeResourcesFit, listers=backed(), gates={"DRAExtendedResource": False})
    assert [] == feasible(off, pod, nodes)


def test_pods_with_devices_behind_are_asked_about_every_time():
    """What devices stand behind hangs on classes, not on the node alone."""
    plugin, state, nodes = make_plugin(NodeResourcesFit, listers=backed()), CycleState(), table([])

    assert plugin.cache_key(state, asking(gpu="1"), nodes) is None
    assert () == plugin.cache_key(state, asking(cpu="1m"), nodes)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, GPU, QUEUE, id="new, behind what is asked for"),
        pytest.param(None, "example.com/other", SKIP, id="new, behind something else"),
        pytest.param(GPU, GPU, SKIP, id="nothing changed"),
        pytest.param("example.com/other", GPU, QUEUE, id="changed to what is asked for"),
    ],
)
def test_class_hint(old, new, hint):
    """A class helps where it comes to stand behind something that the pod requests (5.8)."""
    _, _, on_class = make_plugin(NodeResourcesFit).events_to_register()
    before, after = (None if name is None else next(iter(backed(name).device_classes)) for name in (old, new))

    assert hint == on_class.hint(asking(gpu="1"), before, after)
