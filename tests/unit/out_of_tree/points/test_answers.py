"""What a plugin's answers mean, right ones and wrong ones, and what the failure policy makes of them."""

import asyncio

import grpc
import numpy as np
import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.framework.status import Code
from berth.out_of_tree.connections.last_failures import MAX_FAILURES, LastFailures
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.lifecycle.report import description
from berth.out_of_tree.packing import MAX_NODE_SCORE, normalized
from berth_plugin_proto import common_pb2, identity_pb2, scheduling_pb2
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import NAME, SUCCESS, Scripted, cycle, hosted, passing

FAIL, IGNORE = FailurePolicy.FAIL, FailurePolicy.IGNORE
NO_ROOM = common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text="no room")


def verdicts(each=b"\0\0\0", *reasons):
    return scheduling_pb2.Verdicts(each=each, reasons=reasons)


def status(code, *reasons):
    return common_pb2.Status(code=code, reasons=reasons)


def scores(normalization=scheduling_pb2.NORMALIZATION_NONE, **values):
    return scheduling_pb2.Scores(normalization=normalization, **values)


class Ignored(PluginMetrics):
    """Remembers what was ignored."""

    def __init__(self):
        super().__init__()
        self.ignored_at = []

    def ignored(self, plugin, point):
        """Take note."""
        self.ignored_at.append((plugin, point))


def replying(**changes):
    """A plugin that answers FilterScore well, but for these changes."""
    plugin = Scripted()

    async def reply(request, _context):
        return passing(request, **changes)

    plugin.replies["FilterScore"] = reply
    return plugin


async def test_verdicts_and_scores_in_one_call():
    """Codes point into the reason table; scores come along and are not asked for again."""
    plugin = replying(verdicts=verdicts(b"\0\1\0", NO_ROOM), scores=scores(uint8=b"\5\6\7"))
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        codes = await harness.filter(pod, state)
        raw = await harness.score(state, pod)

    assert [0, 1, 0] == codes.tolist()
    assert [5, 6, 7] == raw.tolist()
    assert (Code.UNSCHEDULABLE, "no room") == (
        harness.plugin.filter_status(state, 1).code,
        harness.plugin.filter_status(state, 1).message,
    )
    assert ["FilterScore"] == [name for name, _ in plugin.asked if name in {"FilterScore", "Score"}]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"verdicts": verdicts(b"\0\0")}, "2 verdicts for 3 nodes", id="wrong length"),
        pytest.param(
            {"verdicts": verdicts(b"\0\2\0", NO_ROOM)}, "reason code 2 is not in the table of 1", id="code"
        ),
        pytest.param(
            {"verdicts": scheduling_pb2.Verdicts(all=3)}, "reason code 3 is not in the table", id="one code"
        ),
        pytest.param(
            {"verdicts": verdicts(b"\1\0\0", common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE))},
            "a reason needs a text and an unschedulable code",
            id="empty reason",
        ),
        pytest.param(
            {"verdicts": verdicts(b"\1\0\0", common_pb2.Reason(code=common_pb2.CODE_SUCCESS, text="x"))},
            "a reason needs a text and an unschedulable code",
            id="reason of another kind",
        ),
        pytest.param(
            {"verdicts": verdicts(b"\0\0\0", *([NO_ROOM] * 256))}, "256 reasons, at most 255", id="reasons"
        ),
        pytest.param({"verdicts": None}, "Success and gives no verdicts", id="no verdicts"),
        pytest.param({"generation": 0}, "answered for generation 0, was asked for 1", id="old generation"),
        pytest.param({"generation": 99}, "it holds generation 99, the newest is 1", id="no such generation"),
        pytest.param({"status": None}, "status code 0 means nothing", id="no status"),
        pytest.param({"status": status(55)}, "status code 55 means nothing", id="unknown status"),
        pytest.param(
            {"status": status(common_pb2.CODE_UNSCHEDULABLE)},
            "Unschedulable without a reason",
            id="no reason",
        ),
        pytest.param(
            {"status": status(common_pb2.CODE_ERROR, "oh no")}, "Filter says Error: oh no", id="own error"
        ),
    ],
)
async def test_wrong_verdicts(changes, says):
    """A verdict that breaks the protocol fails the call with a text that names plugin and fault."""
    async with hosted(replying(**changes)) as harness:
        await harness.up()
        with pytest.raises(SidecarError) as caught:
            await harness.filter()

    assert str(caught.value).startswith("plugin scripted: ")
    assert says in str(caught.value)


async def test_unreadable_reply():
    """Bytes that are no message fail the call."""
    plugin = Scripted()

    async def garbage(_request, _context):
        return b"\xff\xff\xff\xff"

    plugin.replies["FilterScore"] = garbage
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(SidecarError, match="the reply to FilterScore can't be read"):
            await harness.filter()


@pytest.mark.parametrize("points", [(ExtensionPoint.FILTER, IGNORE), (ExtensionPoint.FILTER, FAIL)])
async def test_filter_policy(points):
    """A failed Filter fails the attempt by default; ignored, it lets every node pass and has no opinion."""
    point, policy = points
    async with hosted(replying(generation=99), policy={point: policy}) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        if policy is FAIL:
            with pytest.raises(SidecarError):
                await harness.filter(pod, state)
        else:
            assert [0, 0, 0] == (await harness.filter(pod, state)).tolist()
            assert [0, 0, 0] == (await harness.score(state, pod)).tolist()


WRONG_SCORES = [
    pytest.param({"scores": scores(uint8=b"\1")}, "1 bytes of uint8 scores for 3 nodes", id="uint8"),
    pytest.param({"scores": scores(int32=b"\1" * 6)}, "6 bytes of int32 scores for 3 nodes", id="int32"),
    pytest.param({"scores": scores(int64=b"\1" * 16)}, "16 bytes of int64 scores for 3 nodes", id="int64"),
    pytest.param({"scores": scores()}, "scores without values", id="no values"),
    pytest.param({"scores": None}, "scores without values", id="no scores"),
]


@pytest.mark.parametrize(("changes", "says"), WRONG_SCORES)
@pytest.mark.parametrize("policy", [FAIL, IGNORE])
async def test_wrong_scores(changes, says, policy):
    """Scores that break the protocol are no opinion by default, and fail the attempt where asked for."""
    async with hosted(replying(**changes), policy={ExtensionPoint.SCORE: policy}) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        await harness.filter(pod, state)
        if policy is FAIL:
            with pytest.raises(SidecarError, match=says):
                await harness.score(state, pod)
        else:
            assert [0, 0, 0] == (await harness.score(state, pod)).tolist()


def refusing_to_score(code):
    """A plugin whose FilterScore ends with that code, and which filters well where it is asked to filter."""
    plugin = Scripted()

    async def reply(_request, context):
        await context.abort(code, "scores: index out of range")

    async def filter_alone(request, _context):
        return passing(request, verdicts=verdicts(b"\0\1\0", NO_ROOM)).filter

    plugin.replies |= {"FilterScore": reply, "Filter": filter_alone}
    return plugin


OWN_ERROR = status(common_pb2.CODE_ERROR, "oh no")
NEGATIVE = scores(int32=b"\xff" * 12, normalization=scheduling_pb2.NORMALIZATION_MAX)
FAILING_SCORES = [
    *WRONG_SCORES,
    pytest.param({"score_status": OWN_ERROR}, "Score says Error: oh no", id="own error"),
    pytest.param(
        {"scores": NEGATIVE}, "score -1 is negative where the highest is to become 100", id="negative"
    ),
    pytest.param({"scores": scores(uint8=b"\xc8" * 3)}, "score 200 is not in 0 to 100", id="out of range"),
]


@reports(
    "score-ignored",
    log="`plugin failure ignored`, at most one line in two seconds",
    answer="`berth plugin describe`: Last failures; `berth explain pod`: at the attempt",
)
@pytest.mark.parametrize(("changes", "says"), FAILING_SCORES)
async def test_ignored_scores_are_reported(changes, says, caplog):
    """What is wrong with scores that are ignored is said in the log, of the plugin and of the attempt."""
    plugin = Scripted()

    async def reply(request, _context):
        answer = passing(request, **{k: v for k, v in changes.items() if k != "score_status"})
        if "score_status" in changes:
            answer.score.status.CopyFrom(changes["score_status"])
        return answer

    plugin.replies["FilterScore"] = reply
    metrics = Ignored()
    async with hosted(plugin, metrics=metrics) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        await harness.filter(pod, state)
        raw = await harness.score(state, pod)
        normal = harness.plugin.normalize_score(state, pod, raw)
        (failure,) = description(harness.host.versions[NAME], (), ())["lastFailures"]

    assert [0, 0, 0] == normal.tolist()
    assert [(NAME, "score")] == metrics.ignored_at
    assert ("score", "Ignore", pod.key, 1) == tuple(failure[k] for k in ("point", "policy", "pod", "count"))
    (line,) = [message for message in caplog.messages if "plugin failure ignored" in message]
    (of_attempt,) = state.read(CycleRecord).ignored
    assert all(says in text for text in (failure["error"], line, of_attempt))


@reports("score-ignored", log="`plugin failure ignored`, at most one line in two seconds")
@pytest.mark.parametrize("code", [grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL], ids=str)
async def test_a_call_that_breaks_while_it_scores(code, caplog):
    """Verdicts of a plugin that breaks at FilterScore are asked for alone, and hold without its scores."""
    async with hosted(refusing_to_score(code)) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        codes = await harness.filter(pod, state)
        raw = await harness.score(state, pod)

    assert ([0, 1, 0], [0, 0, 0]) == (codes.tolist(), raw.tolist())
    assert "no room" == harness.plugin.filter_status(state, 1).message
    assert f"FilterScore failed: {code.name}: scores: index out of range" in caplog.text
    assert "plugin failure ignored plugin=scripted point=score" in caplog.text


async def test_a_call_that_breaks_while_it_scores_where_scores_matter():
    """Where Score is to fail closed, no second call is made."""
    plugin = refusing_to_score(grpc.StatusCode.UNKNOWN)
    async with hosted(plugin, policy={ExtensionPoint.SCORE: FAIL}) as harness:
        await harness.up()
        with pytest.raises(SidecarError, match="index out of range"):
            await harness.filter()

    assert [] == plugin.requests("Filter")


def test_equal_failures_are_one():
    """A failure that comes again is counted; the oldest of too many that differ goes."""
    failures = LastFailures("p")
    for i in range(MAX_FAILURES + 1):
        failures.add("score", f"failure {i}", FAIL, "ns/a")
    failures.add("score", "failure 5", FAIL, "ns/b")

    assert MAX_FAILURES == len(list(failures))
    assert ["failure 1", "failure 5"] == [each.text for each in failures][:: MAX_FAILURES - 1]
    assert (2, "ns/b") == [(each.count, each.pod) for each in failures][-1]


async def test_missing_scores():
    """Nodes that passed and were not scored break the protocol: never a silent zero."""
    plugin = Scripted()

    async def reply(request, _context):
        return scheduling_pb2.FilterScoreResponse(filter=passing(request).filter)

    plugin.replies["FilterScore"] = reply
    async with hosted(plugin, policy={ExtensionPoint.SCORE: FAIL}) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        await harness.filter(pod, state)
        with pytest.raises(SidecarError, match="let nodes pass and did not score them"):
            await harness.score(state, pod)


@pytest.mark.parametrize(
    ("raw", "how", "says"),
    [
        pytest.param([0, 101], scheduling_pb2.NORMALIZATION_NONE, "score 101 is not in 0 to 100", id="high"),
        pytest.param([-1, 50], scheduling_pb2.NORMALIZATION_NONE, "score -1 is not in 0 to 100", id="low"),
        pytest.param([1, 2], 0, "normalization 0 means nothing", id="none given"),
        pytest.param([-3, 2], scheduling_pb2.NORMALIZATION_MAX, "score -3 is negative", id="negative"),
        pytest.param([0, 2**62], scheduling_pb2.NORMALIZATION_MAX, "too large", id="overflow"),
        pytest.param([-(2**62), 2**62], scheduling_pb2.NORMALIZATION_MIN_MAX, "too large", id="spread"),
    ],
)
def test_wrong_range(raw, how, says):
    """Scores that cannot be mapped to 0 to 100 as the plugin asked are refused."""
    with pytest.raises(SidecarError, match=says):
        normalized("p", np.array(raw, dtype=np.int64), how)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (scheduling_pb2.NORMALIZATION_MAX, [0, 33, 100]),
        (scheduling_pb2.NORMALIZATION_MAX_REVERSE, [100, 67, 0]),
        (scheduling_pb2.NORMALIZATION_MIN_MAX, [0, 33, 100]),
    ],
)
def test_normalization(how, expected):
    """Scores are mapped to 0 to 100 with integer division."""
    assert MAX_NODE_SCORE == 100
    assert expected == normalized("p", np.array([0, 1, 3], dtype=np.int64), how).tolist()


@pytest.mark.parametrize("reason", ["GENERATION_GONE", "POD_UNKNOWN", "NOT_CONFIGURED", "NOT_SYNCED"])
async def test_failed_precondition(reason):
    """The host mends what a failed precondition names, and asks again."""
    plugin = Scripted()

    async def reply(request, context):
        if len(plugin.requests("FilterScore")) == 1:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no", (("berth-reason", reason),))
        return passing(request)

    plugin.replies["FilterScore"] = reply
    async with hosted(plugin) as harness:
        await harness.up()
        codes = await harness.filter()

    assert [0, 0, 0] == codes.tolist()
    assert 2 == len(plugin.requests("FilterScore"))
    assert (2 if reason == "NOT_CONFIGURED" else 1) == len(plugin.requests("Configure"))
    begun = [request for request in plugin.synced if request.HasField("begin")]
    assert (2 if reason == "NOT_SYNCED" else 1) == len(begun)


async def test_failed_precondition_twice():
    """What a second try does not mend fails the call."""
    plugin = Scripted()

    async def reply(_request, context):
        trailing = (("berth-reason", "POD_UNKNOWN"),)
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "who?", trailing)

    plugin.replies["FilterScore"] = reply
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(SidecarError, match=r"FilterScore failed: FAILED_PRECONDITION: who\?"):
            await harness.filter()

    assert 2 == len(plugin.requests("FilterScore"))


async def test_pod_rejected():
    """A verdict on the pod as a whole stands for every node."""
    plugin = replying(status=status(common_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, "no such GPU"))
    async with hosted(plugin) as harness:
        await harness.up()
        state = cycle()
        codes = await harness.filter(state=state)

    assert [1, 1, 1] == codes.tolist()
    assert "no such GPU" == harness.plugin.filter_status(state, 1).message


async def test_other_table():
    """Another table of the same nodes gets the answers by the nodes' names."""
    plugin = replying(verdicts=verdicts(b"\0\1\0", NO_ROOM), scores=scores(uint8=b"\5\6\7"))
    async with hosted(plugin) as harness:
        await harness.up()
        backwards = type(harness.snapshot)()
        for name in ("n2", "n1", "n0"):
            backwards.take([harness.cache.node_info(name)])
        state, pod = cycle(), harness.pod()
        codes = await harness.plugin.filter(state, pod, backwards)
        raw = await harness.score(state, pod, backwards)

    assert ["n2", "n1", "n0"] == backwards.names
    assert [0, 1, 0] == codes.tolist()
    assert [7, 6, 5] == raw.tolist()


async def test_reserve_to_pre_bind():
    """Labels that Reserve asks for are written at PreBind without another call, and shown at once."""
    plugin = Scripted()
    plugin.replies["Reserve"] = scheduling_pb2.ReserveResponse(
        status=SUCCESS, metadata_patch=b'{"labels":{"scripted/gpu":"1"}}'
    )
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        assert (await harness.plugin.reserve(state, pod, "n0")).ok
        assert harness.plugin.pre_bind_pre_flight(state, pod, "n0").status.ok
        assert (await harness.plugin.pre_bind(state, pod, "n0")).ok

    assert [(pod, {"labels": {"scripted/gpu": "1"}})] == harness.writer.patches
    assert b'"scripted/gpu":"1"' in harness.host.pods.get(pod.uid)
    assert [] == plugin.requests("PreBind")


async def test_binding_annotations():
    """Annotations go with the binding, and are shown at once; an attempt that fails takes them back."""
    plugin = Scripted()
    plugin.replies["Reserve"] = scheduling_pb2.ReserveResponse(
        status=SUCCESS, metadata_patch=b'{"annotations":{"scripted/gpu":"1"}}'
    )
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        before = harness.host.pods.get(pod.uid)
        assert (await harness.plugin.reserve(state, pod, "n0")).ok
        assert harness.plugin.pre_bind_pre_flight(state, pod, "n0").status.skip
        assert b'"scripted/gpu":"1"' in harness.host.pods.get(pod.uid)
        await harness.plugin.unreserve(state, pod, "n0")

    assert {"scripted/gpu": "1"} == state.binding_annotations
    assert [] == harness.writer.patches
    assert before == harness.host.pods.get(pod.uid)


async def test_write_fails():
    """A patch that could not be written is taken back."""
    plugin = Scripted()
    reply = scheduling_pb2.PreBindResponse(status=SUCCESS, metadata_patch=b'{"labels":{"scripted/a":"b"}}')
    plugin.replies["PreBind"] = reply
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod()
        before = harness.host.pods.get(pod.uid)
        harness.writer.failure = ConnectionError("refused")
        with pytest.raises(ConnectionError):
            await harness.plugin.pre_bind(cycle(), pod, "n0")

    assert before == harness.host.pods.get(pod.uid)


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        pytest.param(b"{", "metadata patch: ", id="no JSON"),
        pytest.param(b'{"finalizers":{}}', "metadata patch may not change finalizers", id="other fields"),
        pytest.param(b'{"labels":{"a":1}}', "metadata patch: Expected `str | null`", id="not a text"),
    ],
)
async def test_wrong_patch(patch, says):
    """A patch of anything but labels and annotations fails the attempt, and nothing is written."""
    plugin = Scripted()
    plugin.replies["Reserve"] = scheduling_pb2.ReserveResponse(status=SUCCESS, metadata_patch=patch)
    async with hosted(plugin) as harness:
        await harness.up()
        reserved = await harness.plugin.reserve(cycle(), harness.pod(), "n0")

    assert Code.ERROR is reserved.code
    assert says in reserved.message
    assert [] == harness.writer.patches


@reports("action-fails", answer="`berth plugin describe`: Last failures, and whether they failed the pod")
@pytest.mark.parametrize(
    ("call", "point"),
    [
        ("reserve", ExtensionPoint.RESERVE),
        ("permit", ExtensionPoint.PERMIT),
        ("pre_bind", ExtensionPoint.PRE_BIND),
    ],
)
@pytest.mark.parametrize("policy", [FAIL, IGNORE])
async def test_action_policy(call, point, policy):
    """A failed Reserve, Permit or PreBind fails the attempt, or is as good as a success where ignored."""
    async with hosted(Scripted(), policy={point: policy}) as harness:  # replies have no status
        await harness.up()
        answer = await getattr(harness.plugin, call)(cycle(), harness.pod(), "n0")
        answer = getattr(answer, "status", answer)
        (failure,) = description(harness.host.versions[NAME], (), ())["lastFailures"]

    assert (Code.ERROR if policy is FAIL else Code.SUCCESS) is answer.code
    assert (point.value, policy.value) == (failure["point"], failure["policy"])
    assert "status code 0 means nothing" in failure["error"]


async def test_permit_waits():
    """Permit's Wait needs a duration."""
    plugin = Scripted()
    waiting = scheduling_pb2.PermitResponse(status=status(common_pb2.CODE_WAIT))
    plugin.replies["Permit"] = waiting
    async with hosted(plugin) as harness:
        await harness.up()
        unbounded = await harness.plugin.permit(cycle(), harness.pod(), "n0")
        waiting.timeout.FromSeconds(3)
        bounded = await harness.plugin.permit(cycle(), harness.pod(), "n0")

    assert "Permit says Wait and not for how long" in unbounded.status.message
    assert (Code.WAIT, 3.0) == (bounded.status.code, bounded.timeout_seconds)


@pytest.mark.parametrize("point", [identity_pb2.EXTENSION_POINT_POST_BIND, None], ids=["announced", "not"])
async def test_only_a_plugin_that_announced_it_wants_to_hear_of_bindings(point):
    """For others a binding ends without a task."""
    plugin = Scripted(identity_pb2.EXTENSION_POINT_FILTER, *([] if point is None else [point]))
    async with hosted(plugin) as harness:
        await harness.up()
        harness.pod()
        assert (point is not None) is harness.plugin.wants_post_bind(cycle())


async def test_a_plugin_that_is_not_asked_at_reserve_sees_the_attempt_in_the_state():
    """The assumed pod comes with the attempt that placed it."""
    plugin = Scripted(identity_pb2.EXTENSION_POINT_FILTER)
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod()
        assert harness.plugin.reserve(cycle(attempt=3), pod, "n0").ok
        harness.cache.assume_pod(pod.placed_on("n0"))
        harness.step()
        (delta,) = harness.host.versions[NAME].feed.since(harness.host.versions[NAME].feed.generation - 1)

    assert [3] == [change.pod_upsert.attempt for change in delta.changes]


async def test_unreserve_follows_reserve():
    """Unreserve goes to a plugin that Reserve was sent to, and to no other."""
    plugin = Scripted()
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        await harness.plugin.unreserve(state, pod, "n0")
        assert [] == plugin.requests("Unreserve")
        await harness.plugin.reserve(state, pod, "n0")
        await harness.plugin.unreserve(state, pod, "n0")

    assert [1] == [request.call.pod.attempt for request in plugin.requests("Unreserve")]


@reports("unreserve-fails", log="`not unreserved`, with pod and cause; the plugin learns it from the state")
async def test_a_failed_unreserve(caplog):
    """The log says which pod the plugin was not asked to unreserve, and why; the attempt ends as it would."""
    plugin = Scripted()

    async def fail(_request, context):
        await context.abort(grpc.StatusCode.INTERNAL, "disk full")

    plugin.replies["Unreserve"] = fail
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        await harness.plugin.reserve(state, pod, "n0")
        await harness.plugin.unreserve(state, pod, "n0")

    (line,) = (each for each in caplog.messages if each.startswith(f"not unreserved pod={pod.key} err="))
    assert "disk full" in line


async def test_unannounced_calls():
    """What a plugin does not announce is not called."""
    plugin = Scripted(identity_pb2.EXTENSION_POINT_PERMIT)
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        assert [0, 0, 0] == (await harness.filter(pod, state)).tolist()
        assert harness.plugin.reserve(state, pod, "n0").ok
        assert harness.plugin.pre_bind_pre_flight(state, pod, "n0").status.skip

    assert {"Handshake", "Configure"} == {name for name, _ in plugin.asked}


async def test_calls_run_side_by_side():
    """A call that takes its time holds up no other."""
    plugin = Scripted()
    let_go = asyncio.Event()

    async def slow(_request, _context):
        await let_go.wait()
        return scheduling_pb2.PermitResponse(status=SUCCESS)

    plugin.replies["Permit"] = slow
    plugin.replies["Reserve"] = scheduling_pb2.ReserveResponse(status=SUCCESS)
    async with hosted(plugin) as harness:
        await harness.up()
        permit = asyncio.create_task(harness.plugin.permit(cycle(), harness.pod(), "n0"))
        assert (await harness.plugin.reserve(cycle(), harness.pod("q"), "n0")).ok
        assert not permit.done()
        let_go.set()
        assert (await permit).status.ok
