"""Each way a binding can end has an outcome that says what is known."""

import asyncio
import json

import pytest

from berth.client.errors import ConflictError, NotFoundError, ServerError
from berth.client.pods import Ambiguous, Bound, Conflict, NotFound, PodWrites, Rejected
from berth.client.write_guard import WriteGuard
from tests.unit.client.conftest import (
    answer,
    outcome_of,
    raw_server,
    read_request,
    silent_later,
    transport_to,
)


def scripted(*answers, seen=None):
    """Answer one request after the other; None cuts the connection after the request was read."""
    left = list(answers)

    async def serve(reader, writer):
        while True:
            request = await read_request(reader)
            if seen is not None:
                seen.append(request)
            reply = left.pop(0)
            if reply is None:
                return
            writer.write(reply)

    return serve


def status(code, message="no", reason="X"):
    return json.dumps({"kind": "Status", "code": code, "message": message, "reason": reason}).encode()


async def bind(*answers, seen=None, **options):
    async with (
        raw_server(scripted(*answers, seen=seen)) as server,
        transport_to(server.url) as transport,
    ):
        return await outcome_of(PodWrites(transport, **options))


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        pytest.param(answer(201, status(201)), Bound(), id="created"),
        pytest.param(answer(201, b"not even JSON"), Bound(), id="created, unreadable body"),
        pytest.param(answer(409, status(409, "taken")), Conflict("taken"), id="conflict"),
        pytest.param(answer(404, status(404, "gone")), NotFound("gone"), id="not found"),
        pytest.param(answer(403, status(403, "no")), Rejected(403, "no"), id="forbidden"),
        pytest.param(answer(422, b"<html>"), Rejected(422, "<html>"), id="refused in HTML"),
    ],
)
async def test_bind(reply, outcome):
    """The answer's status alone decides."""
    assert outcome == await bind(reply)


@pytest.mark.parametrize("reply", [None, answer(500, status(500)), answer(504, b"")])
async def test_bind_ambiguous(reply):
    """Cuts and 5xx are ambiguous, and the binding is sent once only."""
    seen = []

    assert isinstance(await bind(reply, seen=seen), Ambiguous)
    assert len(seen) == 1


async def test_bind_timeout():
    """No answer in time is ambiguous."""

    async with raw_server(silent_later) as server, transport_to(server.url) as transport:
        await transport.request("GET", "/")
        outcome = await outcome_of(PodWrites(transport, timeout_seconds=0.01))

    assert isinstance(outcome, Ambiguous)


async def test_bind_throttled(clock):
    """A 429 was refused unread, so the binding is sent again after the wait that was asked for."""
    throttled = answer(429, b"slow down", "Retry-After: 7")

    outcome = await bind(throttled, answer(201), after=clock.after)

    assert Bound() == outcome
    assert clock.slept == [7.0]


async def test_bind_unreachable(clock):
    """A server that cannot be reached did not bind."""
    async with raw_server(None) as server:
        url = server.url
    async with transport_to(url) as transport:
        outcome = await outcome_of(PodWrites(transport, after=clock.after))

    assert isinstance(outcome, Rejected)
    assert outcome.status == 0


async def test_bind_without_proof():
    """Without a fresh lease nothing is sent."""
    seen = []

    outcome = await bind(seen=seen, may_write=WriteGuard(lambda: False))

    assert isinstance(outcome, Rejected)
    assert seen == []


async def test_bind_request():
    """The binding names pod, UID and node, and goes to the pod's subresource."""
    seen = []
    await bind(answer(201), seen=seen)
    head, body = seen[0]

    assert head.startswith(b"POST /api/v1/namespaces/ns/pods/p/binding HTTP/1.1\r\n")
    assert json.loads(body) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "ns", "name": "p", "uid": "u1"},
        "target": {"kind": "Node", "name": "n1"},
    }


async def test_status_patch_retry(clock):
    """A status patch is tried four times, with growing pauses, on what may pass."""
    seen = []
    replies = [answer(code, status(code)) for code in (409, 500, 503, 500)]
    async with raw_server(scripted(*replies, seen=seen)) as server, transport_to(server.url) as transport:
        with pytest.raises(ServerError):
            await PodWrites(transport, after=clock.after).patch_status("ns", "p", {"status": {}})

    assert len(seen) == 4
    assert b"application/strategic-merge-patch+json" in seen[0][0]
    assert all(
        base <= pause <= base * 1.1 for base, pause in zip((0.01, 0.05, 0.25), clock.slept, strict=True)
    )


async def test_status_patch_gives_up(clock):
    """A status patch for a pod that is gone is not repeated."""
    async with raw_server(scripted(answer(404, b""))) as server, transport_to(server.url) as transport:
        with pytest.raises(NotFoundError):
            await PodWrites(transport, after=clock.after).patch_status("ns", "p", {"status": {}})


async def test_patch_metadata():
    """Annotations and labels go out as a merge patch on the pod of that UID."""
    seen = []
    async with raw_server(scripted(answer(200), seen=seen)) as server, transport_to(server.url) as transport:
        await PodWrites(transport).patch_metadata("ns", "p", uid="u1", annotations={"a": "1", "b": None})

    assert b"application/merge-patch+json" in seen[0][0]
    assert json.loads(seen[0][1]) == {"metadata": {"uid": "u1", "annotations": {"a": "1", "b": None}}}


async def test_delete_other_pod():
    """Deleting a name that belongs to another pod by now is a conflict."""
    seen = []
    serve = scripted(answer(409, status(409)), seen=seen)
    async with raw_server(serve) as server, transport_to(server.url) as transport:
        with pytest.raises(ConflictError):
            await PodWrites(transport).delete("ns", "p", "u1", grace_period_seconds=0)

    options = json.loads(seen[0][1])
    assert options["preconditions"] == {"uid": "u1"}
    assert options["gracePeriodSeconds"] == 0


async def test_many_binds_share_few_connections():
    """A thousand bindings at once go through the pool and all end well."""
    async with (
        raw_server(scripted(*[answer(201)] * 1000)) as server,
        transport_to(server.url, max_connections=8) as transport,
    ):
        pods = PodWrites(transport)
        outcomes = await asyncio.gather(*(outcome_of(pods, "ns", f"p{i}", "u", "n") for i in range(1000)))

    assert {Bound()} == set(outcomes)
    assert server.connections <= 8
