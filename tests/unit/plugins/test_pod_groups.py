"""GangScheduling, TopologyPlacementGenerator, PodGroupPodsCount."""

import numpy as np
import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.framework.interface import Placement, ProposedPlacement
from berth.framework.mirrors.listers import Listers
from berth.framework.status import Code, PluginError
from berth.objects.decode import from_document
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.plugins.gang_scheduling import GangScheduling
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.pod_group_pods_count import PodGroupPodsCount
from berth.plugins.topology_placement_generator import TopologyPlacementGenerator
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin

KEY = GroupKey("default", "g")
UU = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def member(name="a", node="", group="g"):
    return make_pod(name, scheduling_group=SchedulingGroup(group), node_name=node, requests={"cpu": "1"})


def gang(min_count=2, **spec):
    policy = {"gang": {"minCount": min_count}} if min_count else {"basic": {}}
    document = {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": policy, **spec},
    }
    return from_document(document, PodGroup)


def topology(key="zone"):
    return gang(schedulingConstraints={"topology": [{"key": key}]})


def made(kind, *pods, group=None, snapshot=None):
    listers = Listers()
    if group is not None:
        listers.pod_groups.put(group)
    plugin = make_plugin(kind, listers=listers, snapshot=snapshot)
    for pod in pods:
        plugin.handle.pod_groups.add(pod)
    return plugin


@pytest.mark.parametrize(
    ("pod", "group", "code", "text"),
    [
        pytest.param(make_pod(), None, Code.SUCCESS, "", id="alone"),
        pytest.param(
            member(),
            None,
            UU,
            'waiting for pods\'s pod group "g" to appear in scheduling queue',
            id="no group",
        ),
        pytest.param(member(), gang(0), Code.SUCCESS, "", id="no gang"),
        pytest.param(
            member(),
            gang(3),
            UU,
            "waiting for minCount pods from a gang to appear in scheduling queue",
            id="too few",
        ),
        pytest.param(member(), gang(2), Code.SUCCESS, "", id="enough, wherever they are"),
    ],
)
def test_pre_enqueue(pod, group, code, text):
    """Pods of a gang wait until minCount of them are known."""
    status = made(GangScheduling, member("a"), member("b", "n0"), group=group).pre_enqueue(pod)

    assert (code, text) == (status.code, status.message)


def test_permit_waits_for_the_gang():
    """Pods wait up to five minutes, and those without a node are tried at once."""
    plugin = made(GangScheduling, member("a"), member("b"), group=gang(2))
    activated = []
    plugin.handle.activate = activated.extend
    plugin.handle.pod_groups.assume(member("a", "n0"))
    result = plugin.permit(CycleState(), member("a", "n0"), "n0")

    assert (Code.WAIT, 300) == (result.status.code, result.timeout_seconds)
    assert "waiting for minCount pods from a gang to be scheduled" == result.status.message
    assert ["b"] == [pod.name for pod in activated]


def test_permit_lets_the_gang_go():
    """The pod that makes it enough allows all that wait."""
    plugin = made(GangScheduling, member("a"), member("b"), group=gang(2))
    for pod in (member("a", "n0"), member("b", "n1")):
        plugin.handle.pod_groups.assume(pod)
    waiting = Waiting("default-a")
    plugin.handle.waiting_pods = waiting

    assert plugin.permit(CycleState(), member("b", "n1"), "n1").status.ok
    assert ["GangScheduling"] == waiting.allowed


class Waiting:
    def __init__(self, uid):
        self.uid, self.allowed = uid, []

    def get(self, uid):
        return self if uid == self.uid else None

    def allow(self, plugin):
        self.allowed.append(plugin)


def test_permit_reads_the_group_cycles_own_view():
    """What a pod-group cycle tries counts inside of it only."""
    plugin = made(GangScheduling, member("a"), group=gang(1))
    state, own = CycleState(), plugin.handle.pod_groups.copy_of(KEY)
    own.assume(member("a", "n0"))
    state.write(PodGroupStates, own)

    assert plugin.permit(state, member("a", "n0"), "n0").status.ok
    assert Code.WAIT is plugin.permit(CycleState(), member("a", "n0"), "n0").status.code


@pytest.mark.parametrize(("pod", "code"), [(make_pod(), Code.SUCCESS), (member(), Code.ERROR)])
def test_permit_without_a_group(pod, code):
    """A group that cannot be read is an error, no group is none."""
    assert code is made(GangScheduling).permit(CycleState(), pod, "n0").status.code


def test_gang_hints():
    """Pods and the group itself help if they belong together."""
    on_pod, on_group = made(GangScheduling).events_to_register()
    found = [
        on_pod.hint(member(), None, other) for other in (member("b"), member("b", group="h"), make_pod())
    ]

    assert [QueueingHint.QUEUE, QueueingHint.SKIP, QueueingHint.SKIP] == found
    assert QueueingHint.QUEUE is on_group.hint(member(), None, gang())
    assert QueueingHint.SKIP is on_group.hint(member(group="h"), None, gang())


NODES = table(
    [
        make_node("n0", labels={"zone": "a"}),
        make_node("n1", labels={"zone": "b"}),
        make_node("n2", labels={"zone": "a"}),
        make_node("n3"),
    ]
)
WHOLE = Placement("", np.arange(4))


def placements(plugin, parent=WHOLE):
    result = plugin.generate_placements(CycleState(), KEY, NODES, parent)
    return result.status.message or {p.name: p.rows.tolist() for p in result.placements}


@pytest.mark.parametrize(
    ("group", "pods", "found"),
    [
        pytest.param(None, [], 'podgroup.scheduling.k8s.io "g" not found', id="no group"),
        pytest.param(gang(), [], {"": [0, 1, 2, 3]}, id="no constraint"),
        pytest.param(topology(), [], {"a": [0, 2], "b": [1]}, id="a domain for each value"),
        pytest.param(topology(), [member("p", "n2")], {"a": [0, 2]}, id="where the group is already"),
        pytest.param(topology("rack"), [], {}, id="no node has the label"),
        pytest.param(
            topology(),
            [member("p", "n3")],
            "cannot determine domain for already scheduled pods: no topology domain found for pod default/p",
            id="on a node without the label",
        ),
        pytest.param(
            topology(),
            [member("p", "n0"), member("q", "n1")],
            "cannot determine domain for already scheduled pods: "
            "more than 1 domain found for pod group: a, b",
            id="in two domains",
        ),
    ],
)
def test_generated_placements(group, pods, found):
    """A group with a topology constraint goes to one domain."""
    assert found == placements(made(TopologyPlacementGenerator, *pods, group=group))


def test_placements_stay_within_the_parent():
    """Domains are cut out of the parent's nodes."""
    plugin = made(TopologyPlacementGenerator, group=topology())

    assert {"a": [2], "b": [1]} == placements(plugin, Placement("half", np.array([1, 2, 3])))


def test_placements_of_a_placement_are_made_once():
    """As long as no node changes; equal rows of another array have equal ones."""
    plugin = made(TopologyPlacementGenerator, group=topology())
    nodes, half = table(NODES.nodes), Placement("half", np.array([1, 2, 3]))
    first, again, other = (
        plugin.generate_placements(CycleState(), KEY, nodes, parent).placements
        for parent in (half, half, Placement("other", half.rows.copy()))
    )

    assert first is again
    assert [(each.name, each.rows.tolist()) for each in first] == [
        (each.name, each.rows.tolist()) for each in other
    ]


def proposed(*sizes):
    return [
        ProposedPlacement(
            Placement(str(i), np.array([i])), [(member(f"p{i}{j}"), f"n{i}") for j in range(size)]
        )
        for i, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("placed", "sizes", "scores"), [([], (1, 3), [33, 100]), ([member("x", "n0")], (0, 2), [33, 100])]
)
def test_pods_count(placed, sizes, scores):
    """The most pods of the group, those placed before included, are worth 100."""
    plugin = made(PodGroupPodsCount, *placed)

    assert scores == plugin.score_placements(CycleState(), KEY, NODES, proposed(*sizes)).tolist()


def test_pods_count_of_nothing():
    """Placements without pods cannot be compared."""
    with pytest.raises(PluginError, match="no pods from pod group are assigned to any of the candidate"):
        made(PodGroupPodsCount).score_placements(CycleState(), KEY, NODES, proposed(0, 0))


def test_fit_scores_full_placements_higher():
    """A placement counts as one big node, scored by what would be used of it (5.8, ScorePlacement)."""
    nodes = table(
        [make_node("n0", allocatable={"cpu": "4", "memory": "2000Mi", "pods": "9"}), make_node("n1")]
    )
    plugin = make_plugin(NodeResourcesFit)
    both = [ProposedPlacement(Placement("x", np.array([0, 1])), proposed(2)[0].assignments)]

    # cpu 2 of 8 cores, memory 2 x 200Mi of 2000Mi + 16Gi, then 2 of 4 and 400Mi of 2000Mi.
    assert [(25 + 2) // 2] == plugin.score_placements(CycleState(), KEY, nodes, both).tolist()
    assert [(50 + 20) // 2] == plugin.score_placements(CycleState(), KEY, nodes, proposed(2)).tolist()
