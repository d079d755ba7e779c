"""Serve a plugin: gRPC and ttrpc on unix sockets, gRPC over TCP with certificates, health, graceful stop."""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from berth_plugin_proto import queueing_pb2, scheduling_pb2, state_pb2
from berth_sdk import queueing, scheduling
from berth_sdk import sync as state
from berth_sdk.dispatch import TOO_LATE, UNARY, Dispatch, Failure, Unary, failure_of
from berth_sdk.errors import AddressError, SdkError
from berth_sdk.pages import METRICS, STATE, Pages, as_json
from berth_sdk.plugin import Plugin
from berth_sdk.replies import Replies
from berth_sdk.session import Session
from berth_sdk.sockets import prepare_socket, private, set_mode, unix_path
from berth_sdk.tracing import Tracing
from berth_sdk.ttrpc import TtrpcServer, serve_ttrpc
from berth_sdk.waiting import begin

log = logging.getLogger(__name__)

PACKAGE = "berth.plugin.v1"
LOOP_VARIABLE = "BERTH_EVENT_LOOP"
READINESS = f"{PACKAGE}.SchedulingService"
REASON_KEY = "berth-reason"
MAX_MESSAGE_BYTES = 64 << 20  # replies and calls grow with the cluster; Sync stays below 4 MiB by itself
ALLOCATIONS_BEFORE_A_COLLECTION = 50_000
ENDS_READ_SECONDS = 0.02
"""How long hosts get to read the ends of their streams before connections close: gRPC passes over what came
where it writes to a closed one first, and reports an error in place of a good end."""
MAX_STREAMS = 1_000
"""So many calls of one connection are open at a time, those included that were reset a moment ago: further
ones wait at the host's side. Without it a client that resets streams has others' calls cancelled."""
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_concurrent_streams", MAX_STREAMS),
    ("grpc.so_reuseport", 0),
)

Context = grpc.aio.ServicerContext[Any, Any]
Stream = Callable[[Any, Context], AsyncIterator[Message]]


class Server:
    """A plugin being served."""

    def __init__(
        self,
        plugin: Plugin,
        address: str,
        *,
        credentials: grpc.ServerCredentials | None = None,
        tracing: Tracing | None = None,
        ttrpc: bool = True,
    ) -> None:
        self.plugin = plugin
        self.address = address
        self.session = Session(plugin)
        self._credentials = credentials
        self._tracing = tracing or Tracing.from_environment(plugin.name, plugin.version)
        self._dispatch = Dispatch(self.session, self._tracing)
        self._wants_ttrpc = ttrpc
        self._ttrpc: TtrpcServer | None = None
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(options=OPTIONS)
        self._watch: asyncio.Task[None] | None = None
        self._streams: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.on_ready: Callable[[], None] = lambda: None
        """Called as the plugin turns ready: the cluster is in memory."""
        self._pages = Pages(
            {
                "/metrics": (METRICS, self.session.metrics),
                "/state": (STATE, lambda: as_json(plugin.state())),
            }
        )

    async def serve_metrics(self, address: str) -> int:
        """Serve GET /metrics in Prometheus' text format, and GET /state, at host:port; the port that it is.

        Raises: AddressError: that can't be had.
        """
        return await self._pages.serve(address)

    async def start(self) -> None:
        """Listen.

        Raises: AddressError: the address is in use, or can't be served.
        """
        self._server.add_generic_rpc_handlers(self._handlers())
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self.plugin.clock.arm()
        await self._report(ready=False)
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        self._bind()
        path = unix_path(self.address)
        if path is not None and self._wants_ttrpc:
            self._ttrpc = await serve_ttrpc(self._dispatch, path)
            self.session.ttrpc_socket = None if self._ttrpc is None else self._ttrpc.path.name
        await self._server.start()
        if path is not None:
            set_mode(path)
        self._watch = asyncio.create_task(self._watch_readiness())
        log.info(
            "serving plugin=%s version=%s address=%s", self.plugin.name, self.plugin.version, self.address
        )

    async def stop(self, grace_seconds: float = 5.0) -> None:
        """Turn unready, end the streams, let calls that are running end, and write out spans.

        All calls have the same grace, over whichever socket they came.
        """
        await self._health.enter_graceful_shutdown()
        self._stopping = True
        self.plugin.clock.disarm()
        for stream in self._streams:
            stream.cancel()
        if self._streams:
            await asyncio.sleep(ENDS_READ_SECONDS)
        endings = [self._server.stop(grace_seconds)]
        if self._ttrpc is not None:
            endings.append(self._ttrpc.stop(grace_seconds))
        await asyncio.gather(*endings)
        self._pages.close()
        await scheduling.tell(self.plugin.stopped)
        await asyncio.to_thread(self._tracing.shutdown)
        if self._watch is None:
            return
        self._watch.cancel()
        if path := unix_path(self.address):
            path.unlink(missing_ok=True)

    async def _watch_readiness(self) -> None:
        while True:
            await self.session.turned.wait()
            self.session.turned.clear()
            if self.session.ready:
                self.on_ready()
            await self._report(ready=self.session.ready)

    async def _report(self, *, ready: bool) -> None:
        status = health_pb2.HealthCheckResponse
        await self._health.set(READINESS, status.SERVING if ready else status.NOT_SERVING)

    def _bind(self) -> None:
        path = unix_path(self.address)
        if path:
            prepare_socket(path)
        elif self._credentials is None:
            raise AddressError(f"{self.address}: only unix:/path sockets are served without certificates")
        try:
            with private():
                if self._credentials and not path:
                    self._server.add_secure_port(self.address, self._credentials)
                else:
                    self._server.add_insecure_port(self.address)
        except RuntimeError as error:
            raise AddressError(f"{self.address}: {error}") from error

    def _handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        tables = {service: self._unary_handlers(methods) for service, methods in UNARY.items()}
        tables["SchedulingService"]["Converse"] = grpc.stream_stream_rpc_method_handler(
            self._converse,
            request_deserializer=scheduling_pb2.ConverseRequest.FromString,
            response_serializer=scheduling_pb2.ConverseResponse.SerializeToString,
        )
        tables["StateService"] = {
            "Sync": grpc.stream_stream_rpc_method_handler(
                self._relayed(self._sync),
                request_deserializer=state_pb2.SyncRequest.FromString,
                response_serializer=state_pb2.SyncResponse.SerializeToString,
            )
        }
        tables["QueueingService"]["Requeue"] = grpc.unary_stream_rpc_method_handler(
            self._relayed(self._requeue),
            request_deserializer=queueing_pb2.RequeueRequest.FromString,
            response_serializer=queueing_pb2.RequeueResponse.SerializeToString,
        )
        return tuple(
            grpc.method_handlers_generic_handler(f"{PACKAGE}.{service}", table)
            for service, table in tables.items()
        )

    def _unary_handlers(
        self, methods: dict[str, tuple[Unary, type[Message]]]
    ) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        return {
            name: grpc.unary_unary_rpc_method_handler(
                self._unary(name, function),
                request_deserializer=request.FromString,
                response_serializer=_serialized,
            )
            for name, (function, request) in methods.items()
        }

    def _unary(self, name: str, function: Unary) -> Callable[[Any, Context], Awaitable[Message]]:
        async def handle(request: Any, context: Context) -> Message:
            try:
                return await self._dispatch.call(name, function, request, context.invocation_metadata() or ())
            except Exception as error:  # noqa: BLE001 - those without a code are raised again
                failure = failure_of(error)
                trailing = ((REASON_KEY, failure.reason),) if failure.reason else ()
                await context.abort(failure.code, failure.text, trailing)

        return handle

    async def _converse(
        self, requests: AsyncIterator[scheduling_pb2.ConverseRequest], context: Context
    ) -> None:
        """Answer calls in their order, and those that have to wait as soon as they have their answers."""
        async with asyncio.TaskGroup() as tasks:
            replies = Replies(context)

            async def take() -> None:
                async for request in requests:
                    ready = []
                    for each in (request, *request.also):
                        answer = begin(self._answer(each))
                        if isinstance(answer, asyncio.Task):
                            tasks.create_task(self._reply(each, answer, replies))
                        else:
                            ready.append(answer)
                    await replies.send(*ready)

            await self._until_stopped(take())

    def _relayed(self, stream: Stream) -> Callable[[Any, Context], Awaitable[None]]:
        async def handle(requests: Any, context: Context) -> None:
            async def relay() -> None:
                async for response in stream(requests, context):
                    await context.write(response)

            await self._until_stopped(relay())

        return handle

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Work at a stream to its end, or until the server stops, which is a good end too."""
        if self._stopping:  # the stream was opened before the stop, and is begun after it
            work.close()
            return
        task = asyncio.create_task(work)
        self._streams.add(task)
        try:
            await task
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            self._streams.discard(task)

    async def _reply(
        self,
        request: scheduling_pb2.ConverseRequest,
        answer: "asyncio.Task[scheduling_pb2.ConverseResponse]",
        replies: Replies,
    ) -> None:
        """Reply to a call that has to wait, at its deadline at the latest."""
        try:
            async with asyncio.timeout(_seconds(request)):
                response = await answer
        except TimeoutError:
            response = _failed(request.id, TOO_LATE)
        await replies.send(response)

    async def _answer(self, request: scheduling_pb2.ConverseRequest) -> scheduling_pb2.ConverseResponse:
        field = request.WhichOneof("call") or ""
        name = "".join(part.capitalize() for part in field.split("_"))
        function, _ = UNARY["SchedulingService"].get(name, (None, None))
        if function is None:
            missing = Failure(grpc.StatusCode.UNIMPLEMENTED, "", f"no such call: {field or 'none'}")
            return _failed(request.id, missing)
        metadata = (("traceparent", request.traceparent),) if request.traceparent else ()
        try:
            response = await self._dispatch.call(name, function, getattr(request, field), metadata)
        except Exception as error:  # noqa: BLE001 - those without a code are raised again
            return _failed(request.id, failure_of(error))
        answer = scheduling_pb2.ConverseResponse(id=request.id)
        getattr(answer, field).CopyFrom(response)
        return answer

    async def _sync(
        self, requests: AsyncIterator[state_pb2.SyncRequest], context: Context
    ) -> AsyncIterator[state_pb2.SyncResponse]:
        del context
        async for response in state.sync(self.session, requests):
            yield response

    async def _requeue(
        self, request: queueing_pb2.RequeueRequest, context: Context
    ) -> AsyncIterator[queueing_pb2.RequeueResponse]:
        del context
        async for message in queueing.requeue(self.session, request):
            yield message


def serve(
    plugin: Plugin,
    address: str | None = None,
    *,
    credentials: grpc.ServerCredentials | None = None,
    grace_seconds: float = 5.0,
    metrics_address: str | None = None,
    ttrpc: bool = True,
) -> None:
    """Serve the plugin until SIGTERM or SIGINT.

    Args:
        plugin: What to serve.
        address: `unix:/path/to/socket`, or `host:port` with credentials; BERTH_PLUGIN_ADDRESS if not given.
        credentials: Certificates for TCP; demand the client's too.
        grace_seconds: How long running calls may take to end.
        metrics_address: `host:port` for /metrics and /state; BERTH_METRICS_ADDRESS if not given.
        ttrpc: Whether ttrpc is served beside gRPC on a unix socket.

    The event loop is uvloop's where that is installed, or the one that BERTH_EVENT_LOOP names.

    Raises: AddressError: the address can't be served; TraceError: the environment asks for the impossible;
        SdkError: there is no such event loop.
    """
    where = address or os.environ.get("BERTH_PLUGIN_ADDRESS")
    if not where:
        raise AddressError("no address: give one, or set BERTH_PLUGIN_ADDRESS")
    with asyncio.Runner(loop_factory=_loop_factory(os.environ.get(LOOP_VARIABLE, ""))) as runner:
        make = partial(Server, plugin, where, credentials=credentials, ttrpc=ttrpc)
        runner.run(_serve(make, grace_seconds, metrics_address))


def _loop_factory(wanted: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if wanted == "asyncio":
        return None
    if wanted not in {"", "uvloop"}:
        raise SdkError(
            f"{LOOP_VARIABLE}: {wanted!r} is no event loop: set asyncio or uvloop, or leave it out"
        )
    try:
        import uvloop  # noqa: PLC0415 - has no wheel for every platform
    except ImportError:
        if wanted:
            raise SdkError(f"{LOOP_VARIABLE}: uvloop is not installed: install it, or set asyncio") from None
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(make: Callable[[], Server], grace_seconds: float, metrics_address: str | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = make()
    if pages := metrics_address or os.environ.get("BERTH_METRICS_ADDRESS"):
        log.info("serving metrics port=%s", await server.serve_metrics(pages))
    await server.start()
    _collect_less_often()
    server.on_ready = gc.freeze
    await stopped.wait()
    log.info("stopping plugin=%s", server.plugin.name)
    await server.stop(grace_seconds)


def _collect_less_often() -> None:
    """Leave what was imported alone, and look at what comes rarely: the mirror's objects hold no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(ALLOCATIONS_BEFORE_A_COLLECTION)


def _seconds(request: scheduling_pb2.ConverseRequest) -> float | None:
    """Return how long the host waits for the answer, None if it doesn't say."""
    return request.timeout.ToNanoseconds() / 1e9 if request.HasField("timeout") else None


def _failed(number: int, failure: Failure) -> scheduling_pb2.ConverseResponse:
    code, reason, text = failure
    error = scheduling_pb2.CallError(code=code.value[0], reason=reason, message=text)
    return scheduling_pb2.ConverseResponse(id=number, error=error)


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()
