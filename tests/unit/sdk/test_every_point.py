"""The points that a pod meets beside filter, score and reserve, over a real socket."""

import numpy as np
import pytest

from berth_plugin_proto import identity_pb2, scheduling_pb2
from berth_sdk import (
    SKIP,
    Code,
    EventInterest,
    Nomination,
    Plugin,
    Reason,
    Status,
    WatchedResource,
    plugin,
)
from berth_sdk.capabilities import capabilities
from berth_sdk.testing import make_node, make_pod, running
from tests.failures.reporting import reports

NODES = [make_node("n0"), make_node("n1")]
FULL = Reason("node(s) are full")


class Crowd(Plugin):
    """One pod a node; counts with columns of its own."""

    name = "crowd"

    def __init__(self):
        self.crowd = {}
        self.gone_from = []
        self.bound = []

    def state_reset(self, *, epoch_changed):
        del epoch_changed
        self.crowd.clear()

    def pod_upserted(self, placed):
        self.crowd.setdefault(placed.node_name, set()).add(placed.uid)

    def pod_removed(self, placed):
        self.crowd[placed.node_name].discard(placed.uid)

    def profile_removed(self, profile):
        self.gone_from.append(profile)

    def pre_enqueue(self, pod):
        return "no quota" if pod.labels.get("team") == "red" else None

    def filter(self, pod, node):
        del pod
        return FULL if self.crowd.get(node.name) else None

    def post_filter(self, pod, nodes, verdicts):
        del pod
        full = [node for node, code in zip(nodes, verdicts.codes, strict=True) if code]
        if not full:
            return "nothing to take away"
        return Nomination(full[0].name, tuple(nodes.pods_on(full[0].name)))

    def bind(self, pod, node, annotations):
        if node.name == "n1":
            return SKIP
        self.bound.append((pod.name, node.name, annotations))
        return None


class OneByOne(Crowd):
    """The same, looking at nodes on their own."""

    node_local = True


@pytest.fixture(params=[Crowd, OneByOne])
async def host(request):
    """A plugin with a pod on n0."""
    async with running(request.param(), *NODES) as found:
        found.cluster.put_pod(make_pod("old"), "n0")
        yield found


async def test_overlays(host):
    """Overlays do not see each other, and afterwards everything is as it was."""
    old, other = make_pod("old"), make_pod("other")
    answers = await host.filter_overlays(
        make_pod("p"), ("n0", [old], []), ("n0", [], []), ("n1", [], [other]), ("n0", [old], [other])
    )

    assert [None, FULL, FULL, FULL] == answers
    assert {"n0": FULL} == (await host.filter(make_pod("p"))).nodes


async def test_an_overlay_whose_code_has_no_reason():
    """The SDK refuses to send it, as it does for a node as it is."""
    made = plugin("x", filter_nodes=lambda _pod, nodes: np.full(len(nodes), 9, np.uint8))
    async with running(made, *NODES) as host:
        await host.update()
        asked = scheduling_pb2.FilterOverlaysRequest(
            call=host.call(make_pod("p")), overlays=[scheduling_pb2.Overlay(node_index=1)]
        )
        status = (await host.scheduling.FilterOverlays(asked)).status

    assert Code.ERROR.value == status.code
    assert "code 9 has no reason" in status.reasons[0]


async def test_overlay_of_no_node(host):
    """An overlay of a node that is not there is a mistake of the host."""
    await host.update()
    asked = scheduling_pb2.FilterOverlaysRequest(
        call=host.call(make_pod("p")), overlays=[scheduling_pb2.Overlay(node_index=2)]
    )
    with pytest.raises(Exception, match="overlay of node 2, of 2"):
        await host.scheduling.FilterOverlays(asked)


async def test_gate(host):
    """A gate answers without any state."""
    assert Status(Code.UNSCHEDULABLE, ("no quota",)) == await host.pre_enqueue(
        make_pod("p", labels={"team": "red"})
    )
    assert Status() == await host.pre_enqueue(make_pod("p"))


async def test_post_filter(host):
    """A plugin that makes room names a node and who has to go."""
    answer = await host.post_filter(make_pod("p"), {"n0": FULL})

    assert ("n0", ["pod-default-old"]) == (answer.nominated_node_name, list(answer.victim_uids))
    assert Code.UNSCHEDULABLE.value == (await host.post_filter(make_pod("p"), {})).status.code


async def test_bind(host):
    """A binder takes the pod with its annotations, or leaves it to the next."""
    assert Status() == await host.bind(make_pod("p"), "n0", {"a": "b"})
    assert SKIP == await host.bind(make_pod("p"), "n1")


async def test_release():
    """A profile that goes is not configured any more, and the plugin hears of it."""
    plugin = Crowd()
    async with running(plugin, *NODES) as host:
        request = identity_pb2.ConfigureRequest(protocol_version=1, profile=host.profile, removed=True)
        await host.identity.Configure(request)
        with pytest.raises(Exception, match="was not configured"):
            await host.filter(make_pod("p"))

    assert [host.profile] == plugin.gone_from


def test_announcement():
    """What the class says is what is announced: points, kinds, wishes, conditions."""
    groups = WatchedResource("scheduling.x-k8s.io", "v1alpha1", "podgroups")

    class Gang(Crowd):
        watches = (groups,)
        wanted_deadlines_seconds = {"pre_enqueue": 2.5}
        events = (EventInterest(groups.events, (), same_namespace=True, pod_label_names_object="group"),)

    announced = capabilities(Gang())
    assert {
        identity_pb2.EXTENSION_POINT_BIND,
        identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS,
        identity_pb2.EXTENSION_POINT_PRE_ENQUEUE,
        identity_pb2.EXTENSION_POINT_POST_FILTER,
    } < set(announced.extension_points)
    assert ["podgroups"] == [each.resource for each in announced.state.resources]
    (wish,) = announced.wanted_deadlines
    assert (identity_pb2.EXTENSION_POINT_PRE_ENQUEUE, 2, 500_000_000) == (
        wish.extension_point,
        wish.deadline.seconds,
        wish.deadline.nanos,
    )
    (interest,) = announced.events
    assert ("podgroups.v1alpha1.scheduling.x-k8s.io", True, "group") == (
        interest.resource,
        interest.same_namespace,
        interest.pod_label_names_object,
    )


def test_deadline_of_no_point():
    """A wish for a method that no point has is refused."""

    class Wrong(Crowd):
        wanted_deadlines_seconds = {"configure": 1.0}

    with pytest.raises(ValueError, match="no extension point has a method 'configure'"):
        capabilities(Wrong())


class Lines(Plugin):
    """Orders the queue by what is no key."""

    name = "lines"

    def sort_key(self, pod):
        return (1,) if pod.name == "right" else "first"


@reports("sdk-sort-key-wrong", log="`pod without a sort key`, with the pod and what it was given")
async def test_a_sort_key_that_is_none(caplog):
    """The pod has none, the others have theirs, and the plugin's log says what is wrong."""
    async with running(Lines(), make_node("n")) as host:
        assert [(1,), ()] == await host.sort_keys(make_pod("right"), make_pod("wrong"), anew=True)

    assert "pod without a sort key pod=default/wrong err=a sort key is a tuple of at most" in caplog.text
