import pytest

from berth.config.plugin_args import PodTopologySpreadArgs
from berth.config.plugin_args import TopologySpreadConstraint as DefaultSpec
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.framework.mirrors.listers import Listers
from berth.framework.status import Code
from berth.objects.api_object import ObjectMeta, OwnerReference
from berth.objects.label_selector import MAX_VALUES, LabelSelector, Requirement
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import TopologySpreadConstraint
from berth.objects.taint import Taint, Toleration
from berth.objects.workloads import ReplicaSet, Service, ServiceSpec, WorkloadSpec
from berth.plugins.controller_selector import ControllerSelectors
from berth.plugins.pod_topology_spread import PodTopologySpread
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import pre_filtered, reasons, scores

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
WEB = {"app": "web"}
SKEWED = ("node(s) didn't match pod topology spread constraints",)
UNLABELLED = ("node(s) didn't match pod topology spread constraints (missing required label)",)
HOSTS = [make_node(name, labels={"kubernetes.io/hostname": name}) for name in "abcd"]
ZONES = [make_node(name, labels={"zone": name[0], "host": name}) for name in ("x1", "x2", "y1")]


def hard(key="zone", selector=WEB, **more):
    labels = None if selector is None else LabelSelector(selector)
    return TopologySpreadConstraint(
        more.pop("max_skew", 1), key, more.pop("when", "DoNotSchedule"), labels, **more
    )


def soft(key="kubernetes.io/hostname", **more):
    return hard(key, when="ScheduleAnyway", **more)


def spreading(*constraints, labels=WEB, **spec):
    return make_pod(labels=labels, topology_spread_constraints=constraints, **spec)


def web(*node_names, namespace="default"):
    return [make_pod(f"w{i}", namespace=namespace, labels=WEB, node_name=n) for i, n in enumerate(node_names)]


@pytest.mark.parametrize(
    ("pod", "placed", "expected"),
    [
        pytest.param(spreading(hard()), [], {}, id="nothing placed"),
        pytest.param(spreading(hard()), web("x1"), {"x1": SKEWED, "x2": SKEWED}, id="the whole domain"),
        pytest.param(spreading(hard()), web("x1", "y1"), {}, id="even"),
        pytest.param(spreading(hard(max_skew=2)), web("x1"), {}, id="skew allowed"),
        pytest.param(spreading(hard()), web("x1", namespace="other"), {}, id="another namespace"),
        pytest.param(spreading(hard(), labels={}), web("x1"), {}, id="does not count itself"),
        pytest.param(spreading(hard(selector={})), web("x1"), {}, id="an empty selector counts no pod"),
        pytest.param(spreading(hard(selector=None)), web("x1", "x1"), {}, id="no selector, too"),
        pytest.param(
            spreading(hard("host"), hard()), web("x1"), {"x1": SKEWED, "x2": SKEWED}, id="two constraints"
        ),
        pytest.param(
            spreading(hard("disk")), [], dict.fromkeys(("x1", "x2", "y1"), UNLABELLED), id="no such label"
        ),
        pytest.param(
            spreading(hard(), node_selector={"zone": "x"}), web("x1"), {}, id="other domains do not count"
        ),
        pytest.param(
            spreading(hard(node_affinity_policy="Ignore"), node_selector={"zone": "x"}),
            web("x1"),
            {"x1": SKEWED, "x2": SKEWED},
            id="unless affinity is ignored",
        ),
        pytest.param(
            spreading(hard(match_label_keys=("rev", "none")), labels={**WEB, "rev": "2"}),
            web("x1"),
            {},
            id="only pods of the same revision",
        ),
        pytest.param(
            spreading(hard(min_domains=3)),
            web("x1", "y1"),
            dict.fromkeys(("x1", "x2", "y1"), SKEWED),
            id="too few domains",
        ),
    ],
)
def test_filter(pod, placed, expected):
    """A node is turned down where its domain would have too many more pods than the emptiest one."""
    assert expected == reasons(make_plugin(PodTopologySpread), pod, ZONES, placed)


def test_tainted_domains():
    """Domains of tainted nodes count unless the constraint honours taints."""
    nodes = [ZONES[0], make_node("y1", labels={"zone": "y"}, taints=[Taint("t", "", "NoSchedule")])]
    plugin, placed = make_plugin(PodTopologySpread), web("x1")

    assert {"x1": SKEWED} == reasons(plugin, spreading(hard()), nodes, placed)
    assert {} == reasons(plugin, spreading(hard(node_taints_policy="Honor")), nodes, placed)


def test_codes():
    """A missing label is beyond preemption's help, a skew is not."""
    codes = [reason.code for reason in PodTopologySpread.reasons]

    assert [Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE] == codes


def test_skip_and_error():
    """Without hard constraints there is nothing to filter; a broken selector is an error."""
    plugin, nodes = make_plugin(PodTopologySpread), table(ZONES)
    broken = TopologySpreadConstraint(
        1, "zone", "DoNotSchedule", LabelSelector({}, (Requirement("a", "In", ()),))
    )

    assert pre_filtered(plugin, CycleState(), spreading(soft()), nodes).status.skip
    assert Code.ERROR is pre_filtered(plugin, CycleState(), spreading(broken), nodes).status.code


@pytest.mark.parametrize(
    ("counts", "max_skew", "expected"),
    [
        ((2, 1, 0, 3), 1, [20, 60, 100, 0]),
        ((2, 1, 0, 3), 2, [33, 66, 100, 16]),
        ((4, 3, 2, 1), 3, [44, 66, 77, 100]),
        ((0, 0, 0, 0), 1, [100, 100, 100, 100]),
    ],
)
def test_score(counts, max_skew, expected):
    """The fewer matching pods a node has, the better."""
    placed = web(*(name for name, count in zip("abcd", counts, strict=True) for _ in range(count)))
    found = scores(make_plugin(PodTopologySpread), spreading(soft(max_skew=max_skew)), HOSTS, placed)

    assert expected == list(found.values())


def test_unlabelled_nodes_score_nothing():
    """A node that lacks a label of the pod's own constraints gets 0."""
    found = scores(
        make_plugin(PodTopologySpread), spreading(soft("zone")), [*ZONES, make_node("z")], web("x1")
    )

    assert {"x1": 0, "x2": 0, "y1": 100, "z": 0} == found


def listers(*, service=None, replica_set=None):
    found = Listers()
    if service is not None:
        found.services.put(Service(ObjectMeta("s", "default"), ServiceSpec(service)))
    if replica_set is not None:
        found.replica_sets.put(
            ReplicaSet(ObjectMeta("r", "default"), WorkloadSpec(LabelSelector(replica_set)))
        )
    return found


def owned(kind="ReplicaSet", name="r"):
    owner = OwnerReference("apps/v1", kind, name, controller=True)
    meta = ObjectMeta("p", "default", labels={"app": "web", "tier": "front"}, owner_references=(owner,))
    return Pod.of(meta)


@pytest.mark.parametrize(
    ("pod", "service", "replica_set", "expected"),
    [
        pytest.param(owned(), None, None, {}, id="neither"),
        pytest.param(owned(), {"app": "web"}, None, {"app"}, id="service"),
        pytest.param(owned(), {"app": "db"}, None, {}, id="another service"),
        pytest.param(owned(), {"app": "web"}, {"tier": "front"}, {"app", "tier"}, id="both"),
        pytest.param(owned("DaemonSet"), None, {"tier": "front"}, {}, id="another kind of owner"),
        pytest.param(owned(name="gone"), None, {"tier": "front"}, {}, id="an owner that is gone"),
    ],
)
def test_controller_selector(pod, service, replica_set, expected):
    """The selectors of the pod's services and of the controller that owns it are joined."""
    selector = ControllerSelectors(listers(service=service, replica_set=replica_set)).of(pod)

    assert set(expected) == {requirement.key for requirement in selector.requirements}


def test_system_defaults():
    """A pod of a service is spread over hosts and zones without asking for it, and never turned down."""
    plugin = make_plugin(PodTopologySpread, listers=listers(service=WEB))
    pod = make_pod(labels=WEB)

    assert pre_filtered(plugin, CycleState(), pod, table(HOSTS)).status.skip
    assert [0, 100, 100, 100] != list(scores(plugin, pod, HOSTS, web("a", "a")).values())
    assert scores(plugin, pod, HOSTS, web("a"))["b"] == 100
    assert scores(make_plugin(PodTopologySpread), pod, HOSTS, web("a")) is None


def test_listed_defaults():
    """A profile's own list can hold hard constraints."""
    args = PodTopologySpreadArgs(
        defaulting_type="List",
        default_constraints=(
            DefaultSpec(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule"),
        ),
    )
    plugin = make_plugin(PodTopologySpread, args, listers=listers(service=WEB))

    assert {"x1": SKEWED, "x2": SKEWED} == reasons(plugin, make_pod(labels=WEB), ZONES, web("x1"))


MINE = spreading(hard(node_taints_policy="Honor"), name="mine")
BARE_NODE, IN_X, IN_Y = (make_node(labels=labels) for labels in ({}, {"zone": "x"}, {"zone": "y"}))
OTHER = make_pod("o", labels=WEB, node_name="n0")


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, OTHER, QUEUE, id="matching pod comes"),
        pytest.param(None, make_pod("o", node_name="n0"), SKIP, id="another pod comes"),
        pytest.param(None, make_pod("o", labels=WEB), SKIP, id="a waiting one"),
        pytest.param(
            None, make_pod("o", namespace="x", labels=WEB, node_name="n0"), SKIP, id="another namespace"
        ),
        pytest.param(OTHER, None, QUEUE, id="matching pod goes"),
        pytest.param(
            OTHER, make_pod("o", labels={**WEB, "a": "b"}, node_name="n0"), SKIP, id="still matches"
        ),
        pytest.param(OTHER, make_pod("o", node_name="n0"), QUEUE, id="matches no more"),
        pytest.param(
            MINE,
            spreading(hard(), name="mine", tolerations=(Toleration("t", "Exists"),)),
            QUEUE,
            id="the pod tolerates more",
        ),
    ],
)
def test_pod_hint(old, new, hint):
    """A pod helps when its coming or going changes a count."""
    on_pod, _ = make_plugin(PodTopologySpread).events_to_register()

    assert hint == on_pod.hint(MINE, old, new)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, IN_X, QUEUE, id="labelled node comes"),
        pytest.param(None, BARE_NODE, SKIP, id="unlabelled node comes"),
        pytest.param(IN_X, None, QUEUE, id="labelled node goes"),
        pytest.param(IN_X, IN_Y, QUEUE, id="changes domain"),
        pytest.param(BARE_NODE, IN_X, QUEUE, id="gets the label"),
        pytest.param(IN_X, make_node(labels={"zone": "x", "a": "b"}), SKIP, id="another label"),
        pytest.param(IN_X, make_node(labels={"zone": "x"}, taints=[Taint("t")]), QUEUE, id="taints"),
    ],
)
def test_node_hint(old, new, hint):
    """A node with the labels helps when it comes, goes, or changes domain or taints."""
    _, on_node = make_plugin(PodTopologySpread).events_to_register()

    assert hint == on_node.hint(MINE, old, new)


def test_a_constraint_of_too_many_match_label_keys():
    """The pod's condition says how many are read: the API server sets no bound."""
    keys = tuple(f"k{i}" for i in range(MAX_VALUES + 1))
    plugin = make_plugin(PodTopologySpread)

    def status(count):
        constraint = hard(selector=WEB, match_label_keys=keys[: count - 1])
        pod = make_pod(labels=dict.fromkeys(keys, "x") | WEB, topology_spread_constraints=(constraint,))
        return plugin.pre_filter(CycleState(), pod, table(ZONES)).status

    assert (
        "get constraints from pod: found 8193 labels and values; give at most 8192"
        == status(MAX_VALUES + 1).message
    )
    assert status(MAX_VALUES).ok
