"""The points beside Filter, Score and Reserve, with a plugin made with the SDK or with scripted answers."""

import asyncio
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import NominatingInfo, NominatingMode, PostFilterResult
from berth.framework.status import SKIP, SUCCESS, Code, Status
from berth.out_of_tree.points.post_filter import packed
from berth.snapshot.pod_info import PodInfo
from berth_plugin_proto import common_pb2, identity_pb2, scheduling_pb2
from berth_sdk import Nomination, Plugin, Reason
from berth_sdk.serving import Server
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import NAME, Harness, Scripted, cycle, hosted, running

FAIL, IGNORE = FailurePolicy.FAIL, FailurePolicy.IGNORE
FULL = "node(s) are full"


class Roomy(Plugin):
    """One pod a node, a gate for the red team, room by eviction."""

    name = NAME
    node_local = True
    reasons = (Reason(FULL),)

    def __init__(self):
        self.bound = []

    def configure(self, arguments, profile):
        assert ({"a": 1}, "default-scheduler") == (arguments, profile)

    def pre_enqueue(self, pod):
        return "no quota" if pod.labels.get("team") == "red" else None

    def filter_nodes(self, pod, nodes):
        del pod
        return np.array([bool(nodes.pods_on(node.name)) for node in nodes], dtype=np.uint8)

    def post_filter(self, pod, nodes, verdicts):
        del pod
        full = [node.name for node, code in zip(nodes, verdicts.codes, strict=True) if code]
        return Nomination(full[0], tuple(nodes.pods_on(full[0])))

    def bind(self, pod, node, annotations):
        self.bound.append((pod.name, node.name, annotations))


@asynccontextmanager
async def roomy(plugin=None):
    """A host of that plugin; n0 has a pod."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        path = Path(folder, "p.sock")
        server = Server(plugin or Roomy(), f"unix:{path}")
        await server.start()
        try:
            async with running(Harness(path)) as harness:
                harness.cache.add_pod(harness.pod("old").placed_on("n0"))
                harness.step()
                await harness.up()
                yield harness
        finally:
            await server.stop(grace_seconds=0)


class Evicting:
    """Stands for preemption: notes whom it is to evict."""

    def __init__(self):
        self.asked = []

    def attempted(self):
        self.asked.append("attempted")

    def running(self, uid):
        return uid == "pod-default-preempting"

    async def evict(self, request, node_name, victims):
        names = [victim.name for victim in victims]
        self.asked.append((request.plugin, request.pod.name, node_name, names))
        return PostFilterResult(SUCCESS, NominatingInfo(NominatingMode.OVERRIDE, node_name))


async def test_an_answer_that_is_not_wanted():
    """A question that is dropped as it is being sent leaves the stream to all others."""
    async with roomy() as harness:
        for _ in range(20):
            dropped = harness.plugin.filter(cycle(), harness.pod(), harness.snapshot)
            for _ in range(3):
                await asyncio.sleep(0)
            dropped.cancel()
        assert [1, 0, 0] == (await harness.plugin.filter(cycle(), harness.pod(), harness.snapshot)).tolist()
        assert harness.connection.starts == 1


# The gate.


async def test_gate():
    """A sidecar lets pods into the queue, or turns them down with its reason."""
    async with roomy() as harness:
        assert (await harness.plugin.pre_enqueue(harness.pod())).ok
        status = await harness.plugin.pre_enqueue(harness.pod("red", labels={"team": "red"}))

    assert (Code.UNSCHEDULABLE, "no quota", NAME) == (status.code, status.message, status.plugin)


async def test_gate_while_evicting():
    """A pod that room is being made for waits until that is done."""
    async with roomy() as harness:
        harness.handle.preemption = Evicting()
        status = harness.plugin.pre_enqueue(harness.pod("preempting"))

    assert status.message == "waiting for the preemption for this pod to be finished"


async def test_no_gate():
    """A plugin that does not announce the point is not asked."""
    async with hosted(Scripted()) as harness:
        await harness.up()
        assert harness.plugin.pre_enqueue(harness.pod()) == SUCCESS


@pytest.mark.parametrize(("filters", "passes"), [(FAIL, True), (IGNORE, False)])
def test_gate_of_a_stranger(tmp_path, filters, passes):
    """Until a plugin's gate is known pods are held back, unless its filter turns them down."""
    harness = Harness(tmp_path / "p.sock", policy={ExtensionPoint.FILTER: filters})
    answer = harness.plugin.pre_enqueue(harness.pod())
    if not passes:
        answer.close()

    assert passes == (answer == SUCCESS)


@reports("gate-fails", event="`FailedScheduling` of the pod: `held back by plugin`, with the cause")
@pytest.mark.parametrize(("policy", "code"), [(FAIL, Code.ERROR), (IGNORE, Code.SUCCESS)])
async def test_broken_gate(policy, code):
    """A gate that fails holds pods back and says so in an event, or lets them pass where that was chosen."""
    plugin = Scripted(identity_pb2.EXTENSION_POINT_PRE_ENQUEUE)
    plugin.replies["PreEnqueue"] = scheduling_pb2.PreEnqueueResponse(
        status=common_pb2.Status(code=common_pb2.CODE_SKIP)
    )
    async with hosted(plugin, policy={ExtensionPoint.PRE_ENQUEUE: policy}) as harness:
        await harness.up()
        statuses = [await harness.plugin.pre_enqueue(harness.pod()) for _ in range(2)]

    assert [code] * 2 == [status.code for status in statuses]
    told = harness.handle.recorder.events
    notes = [note for *_, note in told]
    assert {"FailedScheduling"} >= {reason for _, _, reason, _, _ in told}
    reported = (
        ["held back by plugin scripted: plugin scripted: PreEnqueue says Skip"] if policy is FAIL else []
    )
    assert reported == notes


# Room.


def turned_down(harness):
    diagnosis = Diagnosis(list(harness.snapshot.names))
    diagnosis.single[0] = Status(Code.UNSCHEDULABLE, (FULL,), NAME)
    return diagnosis


async def test_room():
    """The plugin's victims are evicted as preemption's are, and its node is nominated."""
    async with roomy() as harness:
        harness.handle.preemption = evicting = Evicting()
        result = await harness.plugin.post_filter(cycle(), harness.pod(), turned_down(harness))

    assert (SUCCESS, "n0") == (result.status, result.nominating_info.node_name)
    assert ["attempted", (NAME, "p", "n0", ["old"])] == evicting.asked


def room(**fields):
    """A plugin with that answer to PostFilter."""
    plugin = Scripted(identity_pb2.EXTENSION_POINT_POST_FILTER)
    plugin.replies["PostFilter"] = scheduling_pb2.PostFilterResponse(**fields)
    return plugin


DONE = common_pb2.Status(code=common_pb2.CODE_SUCCESS)
NO = common_pb2.Status(code=common_pb2.CODE_UNSCHEDULABLE, reasons=["no"])


@pytest.mark.parametrize(
    ("answer", "code", "nominated"),
    [
        ({"status": DONE, "nominated_node_name": "n1"}, Code.SUCCESS, "n1"),
        ({"status": NO, "nominated_node_name": ""}, Code.UNSCHEDULABLE, ""),
        ({"status": NO}, Code.UNSCHEDULABLE, None),
        ({"status": DONE, "nominated_node_name": "n1", "victim_uids": ["x"]}, Code.ERROR, None),
        ({"status": NO, "nominated_node_name": "n1", "victim_uids": ["x"]}, Code.ERROR, None),
    ],
)
async def test_nominations(answer, code, nominated):
    """A name nominates, an empty one takes back, none leaves it; victims have to be on nodes."""
    async with hosted(room(**answer), policy={ExtensionPoint.POST_FILTER: FAIL}) as harness:
        await harness.up()
        result = await harness.plugin.post_filter(cycle(), harness.pod(), turned_down(harness))

    info = result.nominating_info
    assert (code, nominated) == (result.status.code, info and info.node_name)


async def test_room_by_default_is_a_favour():
    """A PostFilter that fails leaves the pod to the next plugin."""
    async with hosted(room()) as harness:
        await harness.up()
        result = await harness.plugin.post_filter(cycle(), harness.pod(), turned_down(harness))

    assert (Code.UNSCHEDULABLE, "status code 0 means nothing") == (
        result.status.code,
        result.status.message.rpartition(": ")[2],
    )


def test_verdicts_for_post_filter():
    """Every node has its reason in the table; more reasons than bytes can number become one."""
    diagnosis = Diagnosis([f"n{i}" for i in range(300)], absent=Status(Code.UNSCHEDULABLE, ("absent",)))
    for row in range(1, 300):
        diagnosis.single[row] = Status(Code.UNSCHEDULABLE, (f"reason {row}",))
    verdicts = packed(diagnosis)
    codes = np.frombuffer(verdicts.each, dtype=np.uint8)

    assert ["absent", "reason 1"] == [verdicts.reasons[codes[row] - 1].text for row in (0, 1)]
    assert "another reason" == verdicts.reasons[codes[299] - 1].text
    assert len(verdicts.reasons) <= 255


# Overlays.


async def test_overlays():
    """With other pods on its nodes a table is asked about anew, the others keep the cycle's verdict."""
    async with roomy() as harness:
        state, pod = cycle(), harness.pod()
        assert [1, 0, 0] == (await harness.plugin.filter(state, pod, harness.snapshot)).tolist()
        without = harness.snapshot.what_if("n0", remove=list(harness.snapshot.pods[0].values()))
        assert [0] == (await harness.plugin.filter(state, pod, without)).tolist()
        crowded = harness.snapshot.what_if("n2", add=[PodInfo(harness.pod("nominated"))])
        (code,) = await harness.plugin.filter(state, pod, crowded)
        assert FULL == harness.plugin.filter_status(state, int(code)).message
        assert [1] == (await harness.plugin.filter(state, pod, harness.snapshot.what_if("n0"))).tolist()


async def test_without_overlays():
    """A plugin that does not serve them stands by the cycle's verdicts."""
    plugin = Scripted(identity_pb2.EXTENSION_POINT_FILTER)

    async def full(request, _context):
        return scheduling_pb2.FilterResponse(
            generation=request.call.generation,
            status=DONE,
            verdicts=scheduling_pb2.Verdicts(
                all=1, reasons=[common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text=FULL)]
            ),
        )

    plugin.replies["Filter"] = full
    async with hosted(plugin) as harness:
        await harness.up()
        state, pod = cycle(), harness.pod()
        crowded = harness.snapshot.what_if("n1", add=[PodInfo(harness.pod("nominated"))])
        assert [1] == (await harness.plugin.filter(state, pod, crowded)).tolist()


# Binding.


async def test_bind():
    """A plugin that binds gets the annotations that others want written with the binding."""
    plugin = Roomy()
    async with roomy(plugin) as harness:
        state = cycle()
        state.binding_annotations["gpu"] = "1"
        assert (await harness.plugin.bind(state, harness.pod(), "n1")).ok

    assert [("p", "n1", {"gpu": "1"})] == plugin.bound


@pytest.mark.parametrize(
    ("landed", "policy", "status"),
    [(True, FAIL, SUCCESS), (False, FAIL, None), (False, IGNORE, SKIP)],
)
async def test_bind_that_fails(landed, policy, status):
    """Whether a failed Bind landed is read; where not the attempt fails, or the next binder is asked."""
    plugin = Scripted(identity_pb2.EXTENSION_POINT_BIND)
    plugin.replies["Bind"] = scheduling_pb2.BindResponse()

    async def read(_pod, node_name):
        await asyncio.sleep(0)
        return landed and node_name == "n1"

    async with hosted(plugin, policy={ExtensionPoint.BIND: policy}, landed=read) as harness:
        await harness.up()
        answer = await harness.plugin.bind(cycle(), harness.pod(), "n1")

    assert answer == status if status is not None else answer.code is Code.ERROR


async def test_bind_not_served():
    """A plugin that does not bind leaves it to the next."""
    async with hosted(Scripted()) as harness:
        await harness.up()
        assert SKIP == await harness.plugin.bind(cycle(), harness.pod(), "n1")
