"""Broken hints, streams, traces and ends."""

from pathlib import Path

import grpc

from berth_plugin_proto import common_pb2, queueing_pb2, scheduling_pb2
from berth_sdk.errors import ContractError
from tests.unit.conformance.broken import BrokenServer, Fault
from tests.unit.conformance.faults_of_calls import GARBLED, Busy, answered, asked, passes, turns
from tests.unit.conformance.reference import Slots

HINTS, FILTER = {"QueueingHints"}, {"Filter"}


def fewer_rows(_server, request, response):
    if request.events and request.pods:
        response.hints.pop()


def no_rows(_server, request, response):
    if not request.pods:
        del response.hints[:]


def all_say(response, answer):
    for hint in response.hints:
        hint.all = answer


def flip_hints(server, _request, response):
    all_say(response, turns(server, "hints"))


def not_alone(_server, request, response):
    if len(request.pods) == len(request.events) == 1:
        all_say(response, answer=False)


def passes_over(_server, request, response):
    if response.HasField("unknown_pods") and request.pods[0].uid.startswith("uid-of-never-sent"):
        response.ClearField("unknown_pods")
        all_say(response, answer=False)


def shrugs(_server, request):
    if any(event.new_object == GARBLED for event in request.events):
        hints = [queueing_pb2.Hint(all=False)] * len(request.events)
        return queueing_pb2.QueueingHintsResponse(hints=hints)
    return None


class NeverHints(Slots):
    """Updates are of no use to anybody."""

    def queueing_hint(self, pod, event):
        return super().queueing_hint(pod, event) and event.action != 3


def muddled_hints():
    async def call(server, name, request, proceed):
        if name not in {"QueueingHints", "Filter"}:
            return await proceed(request)
        together = await server.memory.setdefault("busy", Busy()).together()
        response = await proceed(request)
        if together and name == "QueueingHints":
            for hint in response.hints:
                hint.all = not hint.all
        return response

    return Fault(call)


class EndsAtOnce(BrokenServer):
    async def _requeue(self, _request, _context):
        return
        yield


class Twice(BrokenServer):
    """The requeue stream is served twice, not more."""

    async def _requeue(self, request, context):
        self.memory["count"] = self.memory.get("count", 0) + 1
        if self.memory["count"] > 2:
            return
        async for message in super()._requeue(request, context):
            yield message


class OtherIds(BrokenServer):
    async def _answer(self, request):
        answer = await super()._answer(request)
        answer.id += 1
        return answer


class OtherAnswers(BrokenServer):
    async def _answer(self, request):
        answer = await super()._answer(request)
        if answer.HasField("filter"):
            passes(answer.filter)
        return answer


class Muddles(BrokenServer):
    async def _answer(self, request):
        if request.filter.call.generation > self.mirror.generation:
            return await super()._answer(request)
        together = await self.memory.setdefault("busy", Busy()).together()
        answer = await super()._answer(request)
        if together and answer.HasField("filter"):
            passes(answer.filter)
        return answer


class GivesNoReason(BrokenServer):
    async def _answer(self, request):
        answer = await super()._answer(request)
        if answer.HasField("error"):
            answer.error.ClearField("reason")
        return answer


class AnswersNothing(BrokenServer):
    async def _answer(self, request):
        if request.WhichOneof("call") is None:
            return scheduling_pb2.ConverseResponse(id=request.id, filter=scheduling_pb2.FilterResponse())
        return await super()._answer(request)


class OnlyTheFirst(BrokenServer):
    async def _converse(self, requests, context):
        async def alone():
            async for request in requests:
                request.ClearField("also")
                yield request

        await super()._converse(alone(), context)


class OneAtATime(BrokenServer):
    async def _converse(self, requests, context):
        async for request in requests:
            for each in (request, *request.also):
                await context.write(await self._answer(each))


class Reads(BrokenServer):
    """Reads Filter requests in a way of its own."""

    def read(self, data):
        return scheduling_pb2.FilterRequest.FromString(data)

    def _unary_handlers(self, methods):
        handlers = super()._unary_handlers(methods)
        if "Filter" in handlers:
            handlers["Filter"] = grpc.unary_unary_rpc_method_handler(
                handlers["Filter"].unary_unary,
                request_deserializer=self.read,
                response_serializer=handlers["Filter"].response_serializer,
            )
        return handlers


class ReadsAnything(Reads):
    def read(self, data):
        if data == b"\xff\xff\xff\xff":
            return scheduling_pb2.FilterRequest(call=common_pb2.Call(profile="garbage"))
        return super().read(data)


class Strict(Reads):
    def read(self, data):
        if data.endswith(b"later"):
            raise ValueError("broken")
        return super().read(data)


def answers(when):
    def change(_server, request):
        return scheduling_pb2.FilterResponse() if when(request) else None

    return change


class ServesMore(BrokenServer):
    """A method of the scheduling service that there is not."""

    def _unary_handlers(self, methods):
        handlers = super()._unary_handlers(methods)
        if "Filter" in handlers:

            async def nothing(_request, _context):
                return b""

            handlers["NoSuchCall"] = grpc.unary_unary_rpc_method_handler(nothing)
        return handlers


class SmallMessages(BrokenServer):
    def __init__(self, fault, address):
        super().__init__(fault, address)
        self._server = grpc.aio.server()


class OverTcp(BrokenServer):
    """Calls count only over the connection that brought the state."""

    def _bind(self):
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    async def _sync(self, requests, context):
        self.memory["peer"] = context.peer()
        async for response in super()._sync(requests, context):
            yield response

    def _unary(self, name, function):
        inner = super()._unary(name, function)

        async def handle(request, context):
            if name == "Filter" and context.peer() != self.memory["peer"]:
                await context.abort(grpc.StatusCode.INTERNAL, "broken")
            return await inner(request, context)

        return handle


async def zombie(server, name, request, proceed):
    response = await proceed(request) if name != "Filter" else None
    if name == "Handshake" and server.memory.pop("lost", False):
        response.name = "zombie"
    if name == "Filter":
        server.memory["lost"] = server.memory.get("lost", False) or request.call.generation == 99
        response = await proceed(request)
    return response


def traced(when):
    def change(server, _request):
        if when(server.metadata.get("traceparent")):
            raise ContractError("broken")

    return asked(FILTER, change)


async def never_ends():
    """The process goes on."""


FAULTS = {
    "requeue/stays-open": Fault(server=EndsAtOnce),
    "requeue/again": Fault(server=Twice),
    "hints/table": answered(HINTS, fewer_rows),
    "hints/nothing-asked": answered(HINTS, no_rows),
    "hints/deterministic": answered(HINTS, flip_hints),
    "hints/one-by-one": answered(HINTS, not_alone),
    "hints/unknown-pods": answered(HINTS, passes_over),
    "hints/bad-object": asked(HINTS, shrugs),
    "hints/no-miss": Fault(plugin=NeverHints),
    "hints/side-by-side": muddled_hints(),
    "converse/answer": Fault(server=OtherIds),
    "converse/same": Fault(server=OtherAnswers),
    "converse/many": Fault(server=Muddles),
    "converse/together": Fault(server=OnlyTheFirst),
    "converse/refusal": Fault(server=GivesNoReason),
    "converse/no-call": Fault(server=AnswersNothing),
    "converse/waiting": Fault(server=OneAtATime),
    "robust/garbage": Fault(
        asked(FILTER, answers(lambda q: q.call.profile == "garbage")).call, server=ReadsAnything
    ),
    "robust/empty-request": asked(FILTER, answers(lambda q: not q.HasField("call"))),
    "robust/unknown-method": Fault(server=ServesMore),
    "robust/unknown-fields": Fault(server=Strict),
    "robust/large-request": Fault(server=SmallMessages),
    "robust/two-connections": Fault(server=OverTcp),
    "robust/lost-connection": Fault(zombie),
    "trace/context": traced(lambda text: text is not None and text.startswith("00-") and len(text) == 55),
    "trace/malformed": traced(lambda text: text == "garbage"),
    "trace/spans": Fault(options={"trace_file": Path("/nowhere/spans")}),
    "stop/ends": Fault(options={"stop": never_ends}),
}
