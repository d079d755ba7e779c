"""berth.simulation.v1: forks are the client's own, and answers are the engine's."""

import asyncio
import json

import grpc
import pytest

from berth.objects.node import Node
from berth.simulation.reading import snapshot_file
from berth.simulation.reading.kinds import document_of
from berth.simulation_service.errors import NotSyncedError
from berth.simulation_service.limits import ServiceLimits
from berth_simulation_proto import simulation_pb2 as pb
from tests.failures.reporting import reports
from tests.unit.simulation.kit import node, pod
from tests.unit.simulation_service.kit import FakeClock, cluster_of, served, written

LIVE = pb.CreateForkRequest(live=pb.LiveCluster())


def shape(name, cpu, most=10, price=None):
    return pb.NodeShape(name=name, node=written(node(name, cpu=cpu)), max_count=most, price=price)


def asking(count, *shapes, fork_id="", **fields):
    pods = [written(pod(f"p{i}")) for i in range(count)]
    return pb.WouldFitRequest(fork_id=fork_id, pods=pods, shapes=shapes, **fields)


async def refused(call):
    """The code and the text of a call that has no answer."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details()


async def test_what_would_fit():
    """Of the live cluster: what fits as it is, with nodes of each shape, and with the best mixture."""
    async with served(cluster_of(node("n0", cpu="1"))) as at:
        found = await at.simulation.WouldFit(
            asking(4, shape("small", "1", most=2), shape("large", "4"), shape("none", "500m"))
        )

    assert 1 == found.fit_now
    assert [1, 2, 3] == [left.index for left in found.left_now]
    assert [[("small", 2)], [("large", 1)], []] == [
        [(each.name, each.count) for each in added.nodes] for added in found.shapes
    ]
    assert [3] == [left.index for left in found.shapes[0].left]
    assert "0/2 nodes are available: 2 Insufficient cpu." in found.shapes[2].left[0].message
    assert [("large", 1)] == [(each.name, each.count) for each in found.mixture.nodes]


async def test_the_lowest_price():
    """The objective decides which mixture is the best, and its price is said."""
    async with served() as at:
        found = await at.simulation.WouldFit(
            asking(2, shape("a", "2", price=3), shape("b", "1", price=1), objective=pb.OBJECTIVE_LOWEST_PRICE)
        )

    assert ([("b", 2)], 2.0) == ([(n.name, n.count) for n in found.mixture.nodes], found.mixture.price)


async def test_what_a_drain_comes_to():
    """Evicted pods are placed before the copies; both sides are those of `berth simulate fill`."""
    there = [
        node("n0"),
        node("n1"),
        pod("held", cpu="1", nodeName="n0"),
        pod("large", cpu="4", nodeName="n0"),
    ]
    question = pb.WhatIfRequest(changes=["drain n0"], pods=[written(pod("copy"))])
    async with served(cluster_of(*there)) as at:
        found = await at.simulation.WhatIf(question)
        without_copies = await at.simulation.WhatIf(pb.WhatIfRequest(changes=["cordon n0"]))

    assert (4, 2) == (found.before.copies, found.before.nodes_in_use)
    assert (3, 1, 2) == (found.after.copies, found.after.nodes_in_use, found.evicted)
    assert found.after.stopped_by.startswith("0/2 nodes are available: 1 Insufficient cpu")
    assert [("default", "large")] == [(each.namespace, each.name) for each in found.left]
    assert (4000, 4000) == (found.after.resources["cpu"].allocatable, found.after.resources["cpu"].requested)
    after = without_copies.after
    assert (0, 0, 1) == (after.copies, without_copies.evicted, after.nodes_in_use)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([], "changes: found none; give one such as `drain zone=a`"),
        (["drain n9"], "'drain n9': there is no node n9; give a name, `all`, or labels as KEY=VALUE"),
        (["drain"], "'drain': give nodes: a name, `all`, or labels as KEY=VALUE"),
        (["after 60 drain n0"], "this is about one moment: leave `after SECONDS` out"),
        (["/etc/hostname"], "'/etc/hostname': begin with one of add-node, "),
    ],
)
async def test_wrong_changes(changes, text):
    """A change that can't be made is named; none is read from a file of the server."""
    async with served(cluster_of(node("n0"))) as at:
        code, said = await refused(at.simulation.WhatIf(pb.WhatIfRequest(changes=changes)))

    assert grpc.StatusCode.INVALID_ARGUMENT == code
    assert text in said


async def test_a_fork_is_changed_apart():
    """What is applied to a fork is there in its answers, and neither in another fork nor in the cluster."""
    there = cluster_of(node("n0", cpu="1"))
    async with served(there) as at:
        mine, other = [(await at.simulation.CreateFork(LIVE)).fork_id for _ in range(2)]
        changed = await at.simulation.ApplyToFork(
            pb.ApplyToForkRequest(
                fork_id=mine,
                put=[written(node("n1", cpu="8")), written(pod("q", cpu="2", nodeName="n1"))],
                remove=[pb.ObjectName(api_version="v1", kind="Node", name="n0")],
            )
        )
        fit = [(await at.simulation.WouldFit(asking(9, fork_id=fork))).fit_now for fork in (mine, other, "")]

    assert (1, 1) == (changed.nodes, changed.pods)
    assert [6, 1, 1] == fit
    assert ["n0"] == list(there.of(Node))


async def test_a_node_goes_with_its_pods():
    """The pods of a node that is removed are gone with it."""
    async with served(cluster_of(node("n0"), pod("q", nodeName="n0"), pod("r"))) as at:
        fork = await at.simulation.CreateFork(LIVE)
        gone = pb.ObjectName(api_version="v1", kind="Node", name="n0")
        left = await at.simulation.ApplyToFork(pb.ApplyToForkRequest(fork_id=fork.fork_id, remove=[gone]))

    assert (0, 1) == (left.nodes, left.pods)


async def test_changes_are_all_or_nothing():
    """A request of which one object is wrong changes nothing."""
    async with served() as at:
        fork = (await at.simulation.CreateFork(LIVE)).fork_id
        put = [written(node("n0")), b'{"apiVersion": "v1", "kind": "Node"}']
        code, text = await refused(at.simulation.ApplyToFork(pb.ApplyToForkRequest(fork_id=fork, put=put)))
        left = await at.simulation.ApplyToFork(pb.ApplyToForkRequest(fork_id=fork))

    assert (grpc.StatusCode.INVALID_ARGUMENT, 0) == (code, left.nodes)
    assert "put[1]" in text


async def test_a_snapshot_is_uploaded(tmp_path):
    """A fork may be made of a file of `berth snapshot`."""
    path = tmp_path / "c.json.zst"
    with path.open("wb") as stream:
        objects = [document_of(obj, kind) for kind, obj in cluster_of(node("n0"), node("n1")).all()]
        snapshot_file.write(
            stream, objects, snapshot_file.SnapshotHeader(snapshot_file.API_VERSION, snapshot_file.KIND)
        )
    async with served() as at:
        fork = await at.simulation.CreateFork(pb.CreateForkRequest(snapshot=path.read_bytes()))
        found = await at.simulation.WouldFit(asking(9, fork_id=fork.fork_id))

    assert (2, 8) == (fork.nodes, found.fit_now)


async def test_side_by_side():
    """Answers that are made at the same time are those that are made one after the other."""
    async with served(cluster_of(node("n0"))) as at:
        requests = [asking(5 + i, shape("s", "2")) for i in range(6)]
        alone = [await at.simulation.WouldFit(each) for each in requests]
        together = await asyncio.gather(
            *(at.service.would_fit(f"client {i}", each) for i, each in enumerate(requests))
        )

    assert alone == list(together)


async def test_a_fork_is_its_clients():
    """A client has no use for another's fork, and can't drop it."""
    async with served() as at:
        fork = await at.service.create_fork("other", LIVE)
        await at.simulation.DropFork(pb.DropForkRequest(fork_id=fork.fork_id))
        code, text = await refused(at.simulation.WouldFit(asking(1, fork_id=fork.fork_id)))
        assert 1 == len(at.forks)

    assert grpc.StatusCode.NOT_FOUND == code
    assert "create it anew" in text


async def test_a_fork_that_is_dropped():
    """A fork goes with DropFork, which may be repeated."""
    async with served() as at:
        fork = (await at.simulation.CreateFork(LIVE)).fork_id
        for _ in range(2):
            await at.simulation.DropFork(pb.DropForkRequest(fork_id=fork))
        assert 0 == len(at.forks)


async def test_an_idle_fork():
    """A fork goes once it has not been used for the idle time."""
    clock = FakeClock()
    async with served(clock=clock) as at:
        used, idle = [(await at.simulation.CreateFork(LIVE)).fork_id for _ in range(2)]
        clock.seconds += ServiceLimits().idle_seconds - 1
        await at.simulation.WouldFit(asking(1, fork_id=used))
        clock.seconds += 2
        await at.simulation.WouldFit(asking(1, fork_id=used))
        code, _ = await refused(at.simulation.WouldFit(asking(1, fork_id=idle)))

    assert grpc.StatusCode.NOT_FOUND == code


@reports("simulation-refused", answer="`INVALID_ARGUMENT`: the field, what was found there and what to give")
@pytest.mark.parametrize(
    ("request_", "text"),
    [
        pytest.param(pb.WouldFitRequest(), "pods: found none", id="no pods"),
        pytest.param(pb.WouldFitRequest(pods=[b"{"]), "pods[0]: no JSON", id="no JSON"),
        pytest.param(pb.WouldFitRequest(pods=[b"[]"]), "pods[0]: no object", id="no object"),
        pytest.param(pb.WouldFitRequest(pods=[written(node("n"))]), "pods: found none", id="another kind"),
        pytest.param(
            pb.WouldFitRequest(pods=[written(pod("p")), written(pod("p"))]), "found a second time", id="twice"
        ),
        pytest.param(
            pb.WouldFitRequest(pods=[written(pod("p", nodeName="n0"))]), "it is on a node", id="on a node"
        ),
        pytest.param(
            pb.WouldFitRequest(pods=[written(pod("p", schedulerName="x"))]),
            "spec.schedulerName",
            id="profile",
        ),
        pytest.param(asking(1, shape("s", "1"), shape("s", "2")), "a name twice", id="two of one name"),
        pytest.param(
            asking(1, pb.NodeShape(node=written(node("n")), max_count=1)), "shapes[0].name", id="no name"
        ),
        pytest.param(asking(1, shape("s", "1", most=0)), "shapes[0].max_count", id="none at most"),
        pytest.param(asking(1, shape("s", "1", price=-1)), "shapes[0].price", id="a price below nothing"),
        pytest.param(
            asking(1, pb.NodeShape(name="s", node=written(pod("p")), max_count=1)),
            "found no Node",
            id="no node",
        ),
        pytest.param(
            asking(1, shape("s", "1"), objective=pb.OBJECTIVE_LOWEST_PRICE),
            "price: found none",
            id="no price",
        ),
        pytest.param(asking(1, objective=9), "objective: found 9", id="an objective of a later version"),
    ],
)
async def test_wrong_requests(request_, text):
    """A request that can't be answered names the field and what to do."""
    async with served(cluster_of(node("n0"))) as at:
        code, said = await refused(at.simulation.WouldFit(request_))

    assert grpc.StatusCode.INVALID_ARGUMENT == code
    assert text in said


@pytest.mark.parametrize(
    "data", [b"", b"no snapshot", json.dumps(node("n0")).encode(), b"\x28\xb5\x2f\xfd12"]
)
async def test_wrong_uploads(data):
    """What is no snapshot makes no fork."""
    async with served() as at:
        code, _ = await refused(at.simulation.CreateFork(pb.CreateForkRequest(snapshot=data)))
        assert 0 == len(at.forks)

    assert grpc.StatusCode.INVALID_ARGUMENT == code


@reports("simulation-early", answer="`UNAVAILABLE`: the kind that `was not read yet; try again`")
async def test_a_cluster_that_was_not_read_yet():
    """Before the first lists are there the caller is asked to try again."""

    def unread():
        raise NotSyncedError("pods was not read yet; try again")

    async with served(base=unread) as at:
        code, text = await refused(at.simulation.WouldFit(asking(1)))

    assert (grpc.StatusCode.UNAVAILABLE, "pods was not read yet; try again") == (code, text)


@reports(
    "simulation-breaks",
    log="`a request has no answer`, with the cause",
    answer="`INTERNAL`, without the cause; other calls are answered",
)
async def test_what_went_wrong_stays_apart(caplog):
    """An error of the program ends one call: its text is in the log and not in the answer."""

    def broken():
        raise ZeroDivisionError("a secret")

    async with served(base=broken) as at:
        code, text = await refused(at.simulation.WouldFit(asking(1)))
        fork = await at.simulation.DropFork(pb.DropForkRequest(fork_id="x"))

    assert (grpc.StatusCode.INTERNAL, pb.DropForkResponse()) == (code, fork)
    assert "a secret" not in text
    assert "a request has no answer request=WouldFitRequest" in caplog.text
    assert "a secret" in caplog.text
