"""The client and the sandbox, two programs by different hands, understand each other."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from berth.client import (
    Api,
    Bound,
    Conflict,
    EventRecorder,
    LeaderElector,
    LeaseSettings,
    NotFound,
    PodWrites,
    Reference,
    Reflector,
    WatchSource,
    load_endpoint,
)
from berth.client.api import APPLY_PATCH, JSON_PATCH
from berth.client.errors import ConflictError, NotFoundError, RejectedError
from berth.client.resources import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS
from berth.sandbox import SandboxOptions, serve
from tests.unit.client.conftest import eventually, outcome_of, transport_to
from tests.unit.client.test_reflector import Recorder, decode

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


def pod(name):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def node(name):
    resources = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }


@asynccontextmanager
async def cluster(tmp_path, **options):
    """A sandbox with two nodes and three pods, and a transport that found it through its kubeconfig."""
    async with await serve(SandboxOptions(kubelets=False, **options)) as sandbox:
        sandbox.load([node("n1"), node("n2"), pod("a"), pod("b"), pod("c")])
        path = tmp_path / "kubeconfig"
        sandbox.write_kubeconfig(path)
        async with transport_to(load_endpoint(kubeconfig=str(path), environ={})) as transport:
            yield sandbox, transport


async def uid_of(pods, name):
    return decode(await pods.get("default", name))["metadata"]["uid"]


async def test_bind(tmp_path):
    """A pod is bound once; a second node, another UID and a missing pod are refused."""
    async with cluster(tmp_path) as (_, transport):
        pods = PodWrites(transport)
        uid = await uid_of(pods, "a")

        assert await outcome_of(pods, "default", "a", uid, "n1") == Bound()
        assert isinstance(await outcome_of(pods, "default", "a", uid, "n2"), Conflict)
        assert isinstance(await outcome_of(pods, "default", "b", "another", "n1"), Conflict)
        assert isinstance(await outcome_of(pods, "default", "x", uid, "n1"), NotFound)
        assert decode(await pods.get("default", "a"))["spec"]["nodeName"] == "n1"


async def test_pod_writes(tmp_path):
    """Status patches merge conditions, metadata patches merge annotations, deletion minds the UID."""
    async with cluster(tmp_path) as (_, transport):
        pods = PodWrites(transport)
        uid = await uid_of(pods, "a")
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        await pods.patch_status("default", "a", {"status": {"conditions": [condition]}})
        await pods.patch_status("default", "a", {"status": {"nominatedNodeName": "n1"}})
        await pods.patch_metadata("default", "a", uid=uid, annotations={"device": "3"}, labels={"l": "v"})
        found = decode(await pods.get("default", "a"))
        with pytest.raises(ConflictError):
            await pods.delete("default", "a", "another")
        with pytest.raises(RejectedError, match=r"uid: .* field is immutable"):
            await pods.patch_metadata("default", "a", uid="another", labels={"l": "w"})
        await pods.delete("default", "a", uid, grace_period_seconds=0)
        with pytest.raises(NotFoundError):
            await pods.get("default", "a")

    assert found["status"]["nominatedNodeName"] == "n1"
    assert [c["reason"] for c in found["status"]["conditions"] if c["type"] == "PodScheduled"] == [
        "Unschedulable"
    ]
    assert found["metadata"]["annotations"] == {"device": "3"}
    assert found["metadata"]["labels"] == {"l": "v"}


@asynccontextmanager
async def mirror(transport, source, **options):
    recorder = Recorder()
    reflector = Reflector(transport, source, decode, recorder, **options)
    task = asyncio.create_task(reflector.run())
    try:
        await reflector.wait_synced(60)
        yield reflector, recorder
    finally:
        task.cancel()
        await asyncio.wait([task])


def names(story, kind):
    return [what[-1].partition("@")[0] for what in story if what[0] == kind]


async def test_mirror(tmp_path):
    """List by pages, watch on: the mirror sees what is created, bound, finished and deleted."""
    async with (
        cluster(tmp_path) as (sandbox, transport),
        mirror(transport, WatchSource(PODS, field_selector=UNFINISHED), page_size=2) as (reflector, recorder),
    ):
        pods = PodWrites(transport)
        sandbox.load([pod("d")])
        await outcome_of(pods, "default", "a", await uid_of(pods, "a"), "n1")
        await pods.patch_status("default", "b", {"status": {"phase": "Succeeded"}})
        await pods.delete("default", "c", await uid_of(pods, "c"), grace_period_seconds=0)
        await eventually(lambda: len(names(recorder.story, "delete")) == 2)

    assert names(recorder.story, "add") == ["a", "b", "c", "d"]
    assert names(recorder.story, "update") == ["a", "c"]
    assert names(recorder.story, "delete") == ["b", "c"]
    assert reflector.statistics.errors == 0
    assert len(reflector) == 2


async def test_mirror_survives_a_forgotten_history(tmp_path, clock):
    """A mirror whose place in the history was forgotten meanwhile shows the difference, without a restart."""
    async with cluster(tmp_path, history_limit=5) as (sandbox, transport):
        reflector = Reflector(
            transport, WatchSource(NODES), decode, recorder := Recorder(), sleep=clock.sleep
        )
        await reflector._list()
        sandbox.load([node(f"later-{i}") for i in range(50)])
        await Api(transport).delete(NODES, "", "n1")
        task = asyncio.create_task(reflector.run())
        await eventually(lambda: "n1" in names(recorder.story, "delete"))
        task.cancel()
        await asyncio.wait([task])

    assert len(reflector) == 51
    assert reflector.statistics.lists == 2
    assert len(set(names(recorder.story, "add"))) == 52


async def test_lease(tmp_path):
    """A lease is created, renewed and released by its rules."""
    async with cluster(tmp_path) as (_, transport):
        elector = LeaderElector(Api(transport), LeaseSettings(), "me")
        await elector.acquire()
        assert await elector._try(5) is True
        held = decode(await Api(transport).get(LEASES, "kube-system", "kube-scheduler"))
        await elector.release()
        free = decode(await Api(transport).get(LEASES, "kube-system", "kube-scheduler"))

    assert held["spec"]["holderIdentity"] == "me"
    assert not free["spec"].get("holderIdentity")


async def test_events(tmp_path):
    """Events and their series are stored as they were meant."""
    async with cluster(tmp_path) as (_, transport):
        recorder = EventRecorder(Api(transport))
        task = asyncio.create_task(recorder.run())
        for _ in range(2):
            about = Reference("v1", "Pod", "default", "a", "u1")
            recorder.event(
                about, controller="s", type="Normal", reason="Scheduled", action="Binding", note="to n1"
            )
            assert await recorder.drain(60)
        body = await transport.request("GET", EVENTS.collection("default"))
        task.cancel()
        await asyncio.wait([task])

    [event] = decode(body.body)["items"]
    assert event["note"] == "to n1"
    assert event["series"]["count"] == 2
    assert recorder.statistics.failed == 0


async def test_generic_verbs(tmp_path):
    """Create, update with a version, patch, apply and delete work on raw bytes."""
    async with cluster(tmp_path) as (_, transport):
        api = Api(transport)
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "m", "namespace": "default"},
            "data": {"a": "1"},
        }
        created = decode(await api.create(CONFIG_MAPS, "default", msgspec.json.encode(document)))
        with pytest.raises(ConflictError):
            await api.create(CONFIG_MAPS, "default", msgspec.json.encode(document))
        stale = {**created, "metadata": {**created["metadata"], "resourceVersion": "1"}}
        with pytest.raises(ConflictError):
            await api.update(CONFIG_MAPS, "default", "m", msgspec.json.encode(stale))
        await api.patch(CONFIG_MAPS, "default", "m", b'{"data":{"b":"2"}}')
        operation = b'[{"op":"remove","path":"/data/a"}]'
        await api.patch(CONFIG_MAPS, "default", "m", operation, content_type=JSON_PATCH)
        applied = {**document, "data": {"c": "3"}}
        body = await api.apply(CONFIG_MAPS, "default", "m", msgspec.json.encode(applied), owner="test")
        with pytest.raises(RejectedError):
            await api.patch(CONFIG_MAPS, "default", "m", b"[", content_type=APPLY_PATCH)
        await api.delete(CONFIG_MAPS, "default", "m")

    assert decode(body)["data"] == {"b": "2", "c": "3"}
