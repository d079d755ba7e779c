"""Calls over one stream: several in one message, and what becomes of them when the stream breaks."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest

from berth.out_of_tree.transport import conversation
from berth.out_of_tree.transport.conversation import Conversation
from berth.out_of_tree.transport.rpc import RpcError
from berth_plugin_proto import scheduling_pb2, scheduling_pb2_grpc
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS

FILTER = scheduling_pb2.FilterRequest()
RESERVE = scheduling_pb2.ReserveRequest(node_name="n")


class Plugin(scheduling_pb2_grpc.SchedulingServiceServicer):
    """Keeps the messages that came, and answers each with one message; or ends the stream."""

    def __init__(self, *, hangs_up=False):
        self.messages = []
        self._hangs_up = hangs_up

    async def Converse(self, request_iterator, context):  # noqa: N802 - gRPC's name
        async for message in request_iterator:
            self.messages.append([each.WhichOneof("call") for each in (message, *message.also)])
            if self._hangs_up:
                await context.abort(grpc.StatusCode.INTERNAL, "broken")
            first, *others = map(answered, (message, *message.also))
            first.also.extend(reversed(others))
            await context.write(first)


def answered(request):
    """An answer of the call's kind."""
    answer = scheduling_pb2.ConverseResponse(id=request.id)
    getattr(answer, request.WhichOneof("call")).SetInParent()
    return answer


@asynccontextmanager
async def conversing(folder, plugin, *, together=True):
    """A conversation with that plugin, being read."""
    server = grpc.aio.server()
    scheduling_pb2_grpc.add_SchedulingServiceServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{folder}/p.sock")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{folder}/p.sock") as channel:
        stub = scheduling_pb2_grpc.SchedulingServiceStub(channel)
        talk = Conversation(stub, together=together)
        reading = asyncio.create_task(talk.run())
        yield talk
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    await server.stop(0)


async def both(talk):
    """Reserve for one pod and the filter of the next, as two cycles ask for them."""
    return await asyncio.gather(
        talk.Reserve(RESERVE, timeout=PATIENCE_SECONDS), talk.Filter(FILTER, timeout=PATIENCE_SECONDS)
    )


@pytest.mark.parametrize(
    ("together", "messages"), [(True, [["reserve", "filter"]]), (False, [["reserve"], ["filter"]])]
)
async def test_calls_share_a_message_where_the_plugin_takes_that(tmp_path, together, messages):
    """What is asked in one turn of the loop goes as one; answers find their calls in any order."""
    plugin = Plugin()

    async with conversing(tmp_path, plugin, together=together) as talk:
        answers = await both(talk)

    assert [scheduling_pb2.ReserveResponse(), scheduling_pb2.FilterResponse()] == answers
    assert messages == plugin.messages


async def test_a_call_alone_goes_alone(tmp_path):
    """A call is sent though no other comes."""
    plugin = Plugin()

    async with conversing(tmp_path, plugin) as talk:
        await talk.Reserve(RESERVE, timeout=PATIENCE_SECONDS)

    assert [["reserve"]] == plugin.messages


async def test_a_message_stays_small(tmp_path, monkeypatch):
    """Calls that are too large together go apart, in their order."""
    monkeypatch.setattr(conversation, "MAX_TOGETHER_BYTES", 1)
    plugin = Plugin()

    async with conversing(tmp_path, plugin) as talk:
        await both(talk)

    assert [["reserve"], ["filter"]] == plugin.messages


async def test_a_stream_that_breaks_fails_every_call_of_its_message(tmp_path):
    """Calls fail at once where no answer can come."""
    async with conversing(tmp_path, Plugin(hangs_up=True)) as talk:
        broken = await asyncio.gather(
            talk.Reserve(RESERVE, timeout=PATIENCE_SECONDS),
            talk.Filter(FILTER, timeout=PATIENCE_SECONDS),
            return_exceptions=True,
        )

    assert all(isinstance(each, RpcError) for each in broken)
    assert all(each.code is not grpc.StatusCode.DEADLINE_EXCEEDED for each in broken)


@reports("call-not-sent", log="`calls not sent`, with the cause; each such call fails, later ones are sent")
async def test_calls_that_can_not_be_written_fail_at_once(tmp_path, monkeypatch, caplog):
    """What is wrong with one message fails its calls and those behind it; later ones are sent."""
    async with conversing(tmp_path, Plugin()) as talk:
        with monkeypatch.context() as patch:
            patch.setattr(talk._stream, "write", too_long)
            broken = await asyncio.gather(*calls_apart(talk), return_exceptions=True)
        answer = await talk.Reserve(RESERVE, timeout=PATIENCE_SECONDS)

    assert [grpc.StatusCode.INTERNAL] * 2 == [each.code for each in broken]
    assert "could not be sent: OverflowError('too long')" == broken[0].text
    assert scheduling_pb2.ReserveResponse() == answer
    assert "calls not sent" in caplog.text


async def too_long(_message):
    """In place of a write: a message that protobuf or gRPC can't write would have to be 2 GiB long."""
    await asyncio.sleep(0)
    raise OverflowError("too long")


def calls_apart(talk):
    """Two calls, the second of which comes while the first is being written."""

    async def later():
        await asyncio.sleep(0)
        await talk.Filter(FILTER, timeout=PATIENCE_SECONDS)

    return talk.Reserve(RESERVE, timeout=PATIENCE_SECONDS), later()
