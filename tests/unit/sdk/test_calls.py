"""Author functions over a real socket, by the testing host."""

import asyncio

import grpc
import numpy as np
import pytest

from berth_plugin_proto import common_pb2, identity_pb2, queueing_pb2, scheduling_pb2
from berth_sdk import (
    SKIP,
    Action,
    ArgumentError,
    ClusterEvent,
    Code,
    CycleOutcome,
    MetadataPatch,
    Normalization,
    Plugin,
    Reason,
    Verdicts,
    Wait,
    current_call,
    plugin,
)
from berth_sdk.capabilities import capabilities
from berth_sdk.testing import Refused, make_node, make_pod, running
from tests.suite import PATIENCE_SECONDS

NODES = [make_node(f"n{i}", labels={"team": "red" if i % 2 else "blue"}) for i in range(5)]
RED = make_pod("red", labels={"team": "red"})


class TeamNodes(Plugin):
    name = "team-nodes"
    version = "1.2.3"

    def filter(self, pod, node):
        return None if node.labels["team"] == pod.labels["team"] else "node(s) belong to another team"

    def score(self, _pod, node):
        return int(node.name[1:]) * 10


class Vectors(Plugin):
    name = "vectors"
    reasons = (Reason("first"), Reason("second", Code.UNSCHEDULABLE_AND_UNRESOLVABLE))
    normalization = Normalization.MIN_MAX

    def filter_nodes(self, _pod, nodes):
        return np.arange(len(nodes), dtype=np.uint8) % 3

    def score_nodes(self, _pod, nodes):
        return np.arange(len(nodes)) * -(1 << 40)


NO_SCORES = [0.5, float("nan"), float("inf"), "7", None, 2**63, -(2**63) - 1]


@pytest.mark.parametrize("score", NO_SCORES, ids=repr)
@pytest.mark.parametrize("form", ["each node", "all nodes"])
async def test_what_is_no_score(form, score):
    """It fails the attempt with a text that says so: nothing is cut to an integer, nothing wraps around."""

    class Each(Plugin):
        name = "each"
        normalization = Normalization.MIN_MAX

        def score(self, _pod, _node):
            return score

    class All(Plugin):
        name = "all"
        normalization = Normalization.MIN_MAX

        def score_nodes(self, _pod, nodes):
            return nodes.scores(lambda _index, _node: score)

    async with running(Each() if form == "each node" else All(), *NODES) as host:
        with pytest.raises(Refused, match="integer of 64 bits"):
            await host.score(RED)


async def test_filter_per_node():
    """A node is turned down with the text its filter gave."""
    async with running(TeamNodes(), *NODES) as host:
        answer = await host.filter(RED)

    assert {f"n{i}": Reason("node(s) belong to another team") for i in (0, 2, 4)} == answer.nodes


async def test_score_per_node():
    """Only candidates are scored."""
    async with running(TeamNodes(), *NODES) as host:
        assert await host.score(RED, candidates=["n4", "n1"]) == {"n1": 10, "n4": 40}


async def test_filter_score_scores_what_passes():
    """One round trip filters, and scores the nodes that pass."""
    async with running(TeamNodes(), *NODES) as host:
        rejections, scores = await host.filter_score(RED)

    assert rejections.passing(host.cluster.names) == ["n1", "n3"]
    assert scores == {"n1": 10, "n3": 30}


async def test_vector_forms():
    """Codes number the plugin's reasons, and scores beyond 32 bits arrive whole."""
    async with running(Vectors(), *NODES) as host:
        rejections, scores = await host.filter_score(RED)

    assert {"n1": Vectors.reasons[0], "n2": Vectors.reasons[1], "n4": Vectors.reasons[0]} == rejections.nodes
    assert scores == {"n0": 0, "n3": -3 << 40}


async def test_plain_functions():
    """A plugin can be made of functions alone."""
    made = plugin("odd", filter=lambda _, node: None if node.name in "n1n3" else "even")
    async with running(made, *NODES) as host:
        assert (await host.filter(RED)).passing(host.cluster.names) == ["n1", "n3"]


def test_plain_functions_are_extension_points():
    """A misspelt function name is an error."""
    with pytest.raises(TypeError, match="fliter"):
        plugin("x", fliter=print)


async def test_capabilities_are_what_is_overridden():
    """The announcement lists the extension points that the class defines."""
    async with running(TeamNodes(), *NODES) as host:
        hello = await host.handshake()

    assert (hello.name, hello.version, list(hello.supported_versions)) == ("team-nodes", "1.2.3", [1])
    points = {
        identity_pb2.EXTENSION_POINT_FILTER,
        identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS,
        identity_pb2.EXTENSION_POINT_SCORE,
    }
    assert points == set(hello.capabilities.extension_points) - {identity_pb2.EXTENSION_POINT_REQUEUE}
    assert not hello.capabilities.HasField("pod_fields")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param("full", Code.UNSCHEDULABLE, id="text"),
        pytest.param(SKIP, Code.SKIP, id="skip"),
        pytest.param(Reason("no", Code.UNSCHEDULABLE_AND_UNRESOLVABLE), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        pytest.param(7, Code.ERROR, id="nonsense"),
    ],
)
async def test_pre_filter(answer, code):
    """What pre_filter answers becomes the pod's status, and no node is looked at."""
    made = plugin("x", pre_filter=lambda _: answer, filter=lambda *_: 1 / 0)
    async with running(made, *NODES) as host:
        assert code == (await host.filter_status(RED)).code


async def test_an_exception_is_an_error_status():
    """A failing function fails the attempt with a text that names plugin, function and error."""
    async with running(plugin("broken", filter=lambda pod, _: pod.labels["nope"]), *NODES) as host:
        status = await host.filter_status(RED)

    assert (status.code, status.reasons) == (Code.ERROR, ("broken: filter: KeyError: 'nope'",))


@pytest.mark.parametrize(
    ("codes", "complaint"),
    [
        pytest.param(np.zeros(3, np.uint8), "expected 5 codes", id="wrong length"),
        pytest.param(np.full(5, 9, np.uint8), "code 9 has no reason", id="unknown reason"),
        pytest.param(Verdicts(np.zeros(5, np.int64), ()), "expected 5 codes of uint8", id="wrong type"),
    ],
)
async def test_malformed_verdicts_are_not_sent(codes, complaint):
    """The SDK refuses to send vectors that the host would reject."""
    async with running(plugin("x", filter_nodes=lambda *_: codes), *NODES) as host:
        status = await host.filter_status(RED)

    assert status.code == Code.ERROR
    assert complaint in status.reasons[0]


async def test_scores_out_of_range_are_not_sent():
    """Scores beyond 100 need a normalization."""
    async with running(plugin("x", score=lambda *_: 101), *NODES) as host:
        with pytest.raises(Refused, match="0 to 100"):
            await host.score(RED)


async def test_reserve_to_pre_bind():
    """The attempt is known to reserve, and PreBind's patch comes back."""

    class Holds(Plugin):
        name = "holds"

        async def reserve(self, _pod, _node):
            self.key = current_call().key

        def pre_bind(self, _pod, node):
            return MetadataPatch(annotations={"held": f"{self.key.attempt}@{node.name}"})

        def unreserve(self, _key, _node_name):
            self.key = None

    async with running(held := Holds(), *NODES) as host:
        await host.reserve(RED, "n1")
        await host.unreserve(RED, "n1")
        assert held.key is None
        await host.reserve(RED, "n2")

        assert await host.pre_bind(RED, "n2") == {"annotations": {"held": "2@n2"}}
        with pytest.raises(Refused, match="node n9 is gone"):
            await host.pre_bind(RED, "n9")


async def test_permit_waits():
    """A wait carries its time."""
    async with running(plugin("x", permit=lambda *_: Wait(1.5)), *NODES) as host:
        answer = await host.permit(RED, "n0")

    assert (answer.status.code, answer.timeout.ToTimedelta().total_seconds()) == (Code.WAIT, 1.5)


async def test_cycle_done():
    """The plugin hears how an attempt ended."""
    heard = []
    made = plugin("x", cycle_done=lambda key, outcome, node: heard.append((key.name, outcome, node)))
    async with running(made, *NODES) as host:
        await host.cycle_done(RED, CycleOutcome.BOUND, "n0")

    assert heard == [("red", CycleOutcome.BOUND, "n0")]


async def test_arguments():
    """Every error of the arguments goes back."""

    class Picky(Plugin):
        name = "picky"

        def configure(self, arguments, _profile):
            if arguments:
                raise ArgumentError("size: too big", "colour: unknown")

    async with running(Picky(), *NODES) as host:
        assert await host.configure() == []
        assert await host.configure({"size": 9}) == ["size: too big", "colour: unknown"]


async def test_shadow():
    """A plugin knows in whose shadow it is, whenever it is configured or asked; a refusal keeps it so."""
    known = []

    class Careful(Plugin):
        name = "careful"

        def configure(self, arguments, profile):
            known.append(self.in_shadow(profile))
            if arguments:
                raise ArgumentError("colour: not like this")

        def pre_filter(self, _pod):
            known.append(current_call().shadow)

    async with running(Careful(), *NODES) as host:
        host.once = True
        await host.configure({}, shadow=True)
        await host.configure({"colour": 1})
        await host.filter(RED)

    assert [False, True, False, True] == known


async def test_object_may_be_left_out_later():
    """A pod's object is needed once an attempt; without it the host is asked for it."""
    async with running(TeamNodes(), *NODES) as host:
        call = host.call(RED)
        call.pod.ClearField("object")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await host.scheduling.Filter(scheduling_pb2.FilterRequest(call=call))
        assert dict(refused.value.trailing_metadata())["berth-reason"] == "POD_UNKNOWN"

        await host.filter(RED)
        answer = await host.scheduling.Filter(scheduling_pb2.FilterRequest(call=call))
    assert answer.status.code == common_pb2.CODE_SUCCESS


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        pytest.param({"profile": "other"}, "NOT_CONFIGURED", id="profile"),
        pytest.param({"epoch": "other"}, "NOT_SYNCED", id="epoch"),
    ],
)
async def test_refused_calls(changed, cause):
    """A call for an unknown profile or epoch says what to repair."""
    async with running(TeamNodes(), *NODES) as host:
        call = host.call(RED)
        call.MergeFrom(common_pb2.Call(**changed))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await host.scheduling.Filter(scheduling_pb2.FilterRequest(call=call))

    assert cause == dict(refused.value.trailing_metadata())["berth-reason"]


async def test_wrong_bitmap_is_refused():
    """A candidate bitmap of the wrong length is an invalid argument."""
    async with running(TeamNodes(), *NODES) as host:
        request = scheduling_pb2.FilterRequest(
            call=host.call(RED), candidates=scheduling_pb2.Candidates(bitmap=b"12")
        )
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await host.scheduling.Filter(request)

    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_hints():
    """A matrix of events by pods comes back."""
    made = plugin(
        "x",
        queueing_hint=lambda pod, event: event.action is Action.ADD and pod.name != "b",
    )
    events = [ClusterEvent("Node", action) for action in (Action.ADD, Action.DELETE)]
    async with running(made, *NODES) as host:
        pods = [make_pod(name) for name in "abc"]

        assert await host.hints(pods, *events) == [[True, False, True], [False, False, False]]


async def test_hints_of_forgotten_pods_queue_them():
    """A pod whose object is not at hand is queued, and named."""
    async with running(plugin("x", queueing_hint=lambda *_: False), *NODES) as host:
        ref = host.call(RED).pod
        ref.ClearField("object")
        event = queueing_pb2.ClusterEvent(resource="Node", action=Action.ADD.value)
        answer = await host.queueing.QueueingHints(
            queueing_pb2.QueueingHintsRequest(profile=host.profile, events=[event], pods=[ref])
        )

    assert (answer.hints[0].all, answer.unknown_pods) == (True, b"\x01")


async def test_requeue_reaches_the_host():
    """What a plugin says unasked arrives on the stream."""
    async with running(teams := TeamNodes(), *NODES) as host:
        stream = host.queueing.Requeue(queueing_pb2.RequeueRequest())
        reading = asyncio.create_task(stream.read())
        await host.handshake()  # comes after the stream on the same connection
        teams.requeue.pods(["u1"], cause="quota grew")
        message = await reading
        stream.cancel()

    assert (list(message.requeue.uids), message.cause) == (["u1"], "quota grew")


class Waiting(Plugin):
    """Answers once it is asked to, about the nodes that it was given."""

    name = "waiting"
    reasons = (Reason("second"),)

    def __init__(self):
        self.asked, self.reported, self.ended = asyncio.Event(), asyncio.Event(), 0

    async def filter_nodes(self, _pod, nodes):
        self.asked.set()
        await self.reported.wait()
        return np.array([node.name != "n1" for node in nodes])

    async def score_nodes(self, _pod, nodes):
        return np.array([int(node.name[1:]) for node in nodes])

    async def stopped(self):
        self.ended += 1


async def test_vectors_that_wait():
    """An async vector form keeps its nodes while others come and go; its answer is of their generation."""
    plugin = Waiting()
    async with running(plugin, *NODES) as host:
        call = host.call(RED)
        request = scheduling_pb2.FilterScoreRequest(call=call)
        waiting = asyncio.ensure_future(host.scheduling.FilterScore(request, timeout=PATIENCE_SECONDS))
        await plugin.asked.wait()
        host.cluster.remove_node("n0")
        await host.update()
        plugin.reported.set()
        answer = await waiting
        later = await host.filter(RED)

    assert call.generation == answer.filter.generation == answer.score.generation
    assert [0, 1, 0, 0, 0] == list(answer.filter.verdicts.each)
    assert [0, 0, 2, 3, 4] == list(answer.score.scores.uint8)
    assert ["n1"] == list(later.nodes)


async def test_no_overlays_for_vectors_that_wait():
    """What waits can't be shown a cluster that is not, and doesn't announce it."""
    points = capabilities(Waiting()).extension_points

    assert identity_pb2.EXTENSION_POINT_FILTER in points
    assert identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS not in points
    assert identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS in capabilities(Vectors()).extension_points


async def test_stopped():
    """A plugin hears once that its server has stopped."""
    plugin = Waiting()
    async with running(plugin, *NODES):
        assert 0 == plugin.ended

    assert 1 == plugin.ended
