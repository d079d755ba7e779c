"""A client of the simulation service pays for what it asks, and others do not."""

import random

import grpc
import pytest
import zstandard

from berth.simulation.reading import snapshot_file
from berth.simulation.what_if.changes import changed_at_once, parsed
from berth.simulation_service.forks import ForkVersion
from berth.simulation_service.limits import ServiceLimits
from berth.simulation_service.service import applied
from berth_simulation_proto import simulation_pb2 as pb
from tests.hostile.work import growth
from tests.unit.simulation.kit import node, pod
from tests.unit.simulation_service.kit import (
    FakeClock,
    cluster_of,
    groups,
    options_request,
    served,
    wire,
    written,
)
from tests.unit.simulation_service.test_service import LIVE, asking, refused, shape

MEBIBYTE = 1 << 20
FEW = ServiceLimits(
    forks=2,
    forks_of_all=3,
    nodes=3,
    pods=3,
    changes=4,
    asked_pods=5,
    shapes=2,
    unpacked_bytes=MEBIBYTE,
    message_bytes=MEBIBYTE,
)


def node_named(name):
    return written(node(name))


async def test_forks_are_bounded():
    """A client that has as many forks as it may have gets no more of them; another one still has one."""
    async with served(limits=FEW) as at:
        for _ in range(FEW.forks):
            await at.simulation.CreateFork(LIVE)
        code, text = await refused(at.simulation.CreateFork(LIVE))
        await at.service.create_fork("another", LIVE)
        _, of_all = await refused(at.simulation.CreateFork(LIVE))

    assert (grpc.StatusCode.RESOURCE_EXHAUSTED, "forks of the client: found 3; at most 2") == (code, text)
    assert "forks of the client" in of_all


async def test_forks_of_all_are_bounded():
    """Many clients together have no more forks than the server keeps."""
    async with served(limits=FEW) as at:
        for number in range(FEW.forks_of_all):
            await at.service.create_fork(f"client {number}", LIVE)
        code, text = await refused(at.simulation.CreateFork(LIVE))

    assert (grpc.StatusCode.RESOURCE_EXHAUSTED, "forks of all clients: found 4; at most 3") == (code, text)


async def test_an_upload_that_unpacks_for_ever():
    """A small file of many objects is read up to the bound in bytes and no further."""
    head = f'{{"apiVersion": "{snapshot_file.API_VERSION}", "kind": "{snapshot_file.KIND}"}}\n'
    line = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}\n'
    packed = zstandard.compress(head.encode() + line * 200_000)
    assert len(packed) < 10_000
    async with served(limits=FEW) as at:
        code, text = await refused(at.simulation.CreateFork(pb.CreateForkRequest(snapshot=packed)))
        assert 0 == len(at.forks)

    assert grpc.StatusCode.INVALID_ARGUMENT == code
    assert "more than 1048576 bytes unpacked" in text


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (asking(6), "pods: found 6; at most 5"),
        (asking(1, *(shape(name, "1") for name in "abc")), "shapes: found 3; at most 2"),
    ],
)
async def test_questions_are_bounded(request_, text):
    """More pods or shapes than may be asked about are refused."""
    async with served(limits=FEW) as at:
        assert (grpc.StatusCode.RESOURCE_EXHAUSTED, text) == await refused(at.simulation.WouldFit(request_))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"changes": ["cordon n0"] * 3}, "changes: found 3; at most 2"),
        ({"changes": ["add-node n0 x9"]}, "nodes: found 10; at most 3"),
        ({"changes": ["cordon n0"], "max_copies": 4}, "max_copies: found 4; at most 3"),
        ({"changes": ["cordon n0"], "pods": [written(pod("p"))] * 6}, "pods: found 6; at most 5"),
    ],
)
async def test_changes_are_bounded(fields, text):
    """More changes, nodes, pods or copies than may be asked about are refused."""
    async with served(cluster_of(node("n0")), limits=FEW) as at:
        answer = await refused(at.simulation.WhatIf(pb.WhatIfRequest(**fields)))

    assert (grpc.StatusCode.RESOURCE_EXHAUSTED, text) == answer


def test_a_drain_looks_at_each_pod_once():
    """A drain of many nodes with many pods costs as much as there are of both together."""

    def draining(count):
        nodes = [node(f"n{i}") for i in range(count)]
        there = cluster_of(*nodes, *(pod(f"p{i}", nodeName=f"n{i}") for i in range(count)))
        return lambda: changed_at_once(there, [parsed("drain all")])

    assert growth(draining, 50) < 1.5


@pytest.mark.parametrize(
    ("put", "text"),
    [
        ([node_named(f"n{i}") for i in range(5)], "changes: found 5; at most 4"),
        ([node_named(f"n{i}") for i in range(4)], "nodes: found 4; at most 3"),
        ([written(pod(f"p{i}")) for i in range(4)], "pods: found 4; at most 3"),
    ],
)
async def test_a_fork_is_bounded(put, text):
    """What would make a fork too large is refused whole."""
    async with served(limits=FEW) as at:
        fork = (await at.simulation.CreateFork(LIVE)).fork_id
        request = pb.ApplyToForkRequest(fork_id=fork, put=put)
        answer = await refused(at.simulation.ApplyToFork(request))
        left = await at.simulation.ApplyToFork(pb.ApplyToForkRequest(fork_id=fork))

    assert (grpc.StatusCode.RESOURCE_EXHAUSTED, text) == answer
    assert (0, 0) == (left.nodes, left.pods)


async def test_what_is_put_into_a_fork_adds_up():
    """Objects that take each other's place again and again come to the bound in bytes."""
    heavy = node("n0")
    heavy["metadata"]["annotations"] = {"x": "y" * 400_000}
    async with served(limits=FEW) as at:
        fork = (await at.simulation.CreateFork(LIVE)).fork_id
        request = pb.ApplyToForkRequest(fork_id=fork, put=[written(heavy)])
        for _ in range(2):
            await at.simulation.ApplyToFork(request)
        code, text = await refused(at.simulation.ApplyToFork(request))

    assert grpc.StatusCode.RESOURCE_EXHAUSTED == code
    assert text.startswith("bytes put into the fork")


def test_nodes_that_go_are_looked_up_once():
    """Removing many nodes from a fork of many pods costs as much as there are of both together."""

    def removing(count):
        there = ForkVersion(cluster_of(*(pod(f"p{i}", nodeName="other") for i in range(count))))
        names = [pb.ObjectName(api_version="v1", kind="Node", name=f"n{i}") for i in range(count)]
        return lambda: applied(there, pb.ApplyToForkRequest(remove=names))

    assert growth(removing, 50) < 1.5


async def test_a_message_is_bounded():
    """A request that is too large is not read."""
    async with served(limits=FEW) as at:
        request = pb.CreateForkRequest(snapshot=b"x" * (MEBIBYTE + 1))
        code, _ = await refused(at.simulation.CreateFork(request))

    assert grpc.StatusCode.RESOURCE_EXHAUSTED == code


async def test_requests_at_a_time_are_bounded():
    """A client that has as many requests under way as it may have gets no further one."""
    async with served(limits=ServiceLimits(waiting=1)) as at:
        async with at.queries.of("one"):
            with pytest.raises(Exception, match="requests at a time: found 2; at most 1"):
                await at.service.would_fit("one", asking(1))
        found = await at.service.would_fit("one", asking(1))

    assert 0 == found.fit_now


async def test_an_answer_that_takes_too_long():
    """An answer is cut off when its time is over, though its caller would wait."""

    class Hurrying(FakeClock):
        def monotonic(self):
            self.seconds += 1
            return self.seconds

    async with served(limits=ServiceLimits(request_seconds=20), clock=Hurrying()) as at:
        code, text = await refused(at.simulation.WouldFit(asking(40, shape("s", "1", most=1000))))

    assert grpc.StatusCode.DEADLINE_EXCEEDED == code
    assert "ask about fewer pods or shapes" in text


@pytest.mark.parametrize("depth", [900, 100_000])
async def test_nested_objects(depth):
    """An object that is nested too deeply is the caller's mistake."""
    nested = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":' + b'{"a":' * depth
    async with served() as at:
        code, _ = await refused(
            at.simulation.WouldFit(pb.WouldFitRequest(pods=[nested + b"1" + b"}" * (depth + 1)]))
        )

    assert grpc.StatusCode.INVALID_ARGUMENT == code


WRONG = (None, -1, 1e300, "x", [1], [[]], {"a": 1}, {"x": {"y": []}}, True)


async def test_fields_of_other_types():
    """Whatever a pod's fields hold, the answer says what is wrong or what fits."""
    chance, good = random.Random(1), pod("p", cpu="1", tolerations=[{"key": "a", "operator": "Exists"}])
    fields = ["affinity", "tolerations", "topologySpreadConstraints", "volumes", "resourceClaims", "overhead"]
    fields += ["containers", "initContainers", "nodeSelector", "priority", "schedulerName", "resources"]
    codes = set()
    async with served(cluster_of(node("n0"))) as at:
        for field in fields:
            for wrong in chance.sample(WRONG, 5):
                request = pb.WouldFitRequest(pods=[written(good | {"spec": good["spec"] | {field: wrong}})])
                codes.add(await code_of(at.simulation.WouldFit(request)))

    assert {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT} == codes


async def test_protobuf_by_chance():
    """Pods and nodes with bytes that are others than they were are read, or are the caller's mistake."""
    chance, codes = random.Random(2), set()
    asked = wire(pod("p", labels={"a": "b"}, tolerations=[{"key": "a", "operator": "Exists"}]))
    offered = wire(node("n", labels={"a": "b"}))
    async with served() as at:
        for _ in range(150):
            request = options_request([("a", 1, [])], {"a": node("x")})
            request.options[0].podBytes.append(changed(asked, chance))
            request.nodeBytesMap["a"] = changed(offered, chance) if chance.random() < 0.5 else offered
            codes.add(await code_of(at.expander.BestOptions(request)))

    assert {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT} == codes


def changed(data, chance):
    """The bytes with a few others in their place, or cut off."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        made[chance.randrange(len(made))] = chance.randrange(256)
    return bytes(made[: chance.randrange(1, len(made))] if chance.random() < 0.2 else made)


async def code_of(call):
    """How the call ended."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_a_group_that_grows_without_bound():
    """A group that would grow by two thousand million nodes costs as many as its pods need."""
    request = options_request([("a", (1 << 31) - 1, [pod("p")])], {"a": node("x")})
    async with served() as at:
        found = await at.expander.BestOptions(request)

    assert ["a"] == groups(found)
