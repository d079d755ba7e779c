"""A plugin whose every answer a test writes down, and the host's parts around it."""

import asyncio
import tempfile
from contextlib import asynccontextmanager, suppress
from inspect import isawaitable
from pathlib import Path
from types import SimpleNamespace

import grpc
import msgspec

from berth.cache.cache import Cache
from berth.config.catalogue import ExtensionPoint
from berth.config.duration import Duration
from berth.config.out_of_tree.sidecars import DEFAULT_POLICY, SidecarSpec
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.transport.ttrpc import HEADER, RESPONSE
from berth.plugins.priority_sort import PrioritySort
from berth.queue.requeueing.hints import build_hint_map
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.snapshot import Snapshot
from berth.testing.handles import ManualClock, RememberingWriter, make_handle
from berth_plugin_proto import (
    common_pb2,
    group_pb2,
    identity_pb2,
    placement_pb2,
    queueing_pb2,
    scheduling_pb2,
    state_pb2,
    ttrpc_pb2,
)
from berth_sdk import testing as documents
from tests.suite import PATIENCE_SECONDS

NAME = "scripted"
PROFILE = "default-scheduler"
SUCCESS = common_pb2.Status(code=common_pb2.CODE_SUCCESS)
POINTS = (
    identity_pb2.EXTENSION_POINT_FILTER,
    identity_pb2.EXTENSION_POINT_SCORE,
    identity_pb2.EXTENSION_POINT_RESERVE,
    identity_pb2.EXTENSION_POINT_PERMIT,
    identity_pb2.EXTENSION_POINT_PRE_BIND,
    identity_pb2.EXTENSION_POINT_CYCLE_DONE,
)
UNARY = {
    "IdentityService": (identity_pb2, ("Handshake", "Configure")),
    "SchedulingService": (
        scheduling_pb2,
        (
            "PreEnqueue",
            "Filter",
            "Score",
            "FilterScore",
            "PostFilter",
            "Reserve",
            "Unreserve",
            "Permit",
            "PreBind",
            "Bind",
            "CycleDone",
        ),
    ),
    "PlacementService": (placement_pb2, ("GeneratePlacements", "ScorePlacements")),
    "GroupService": (group_pb2, ("PlacementFeasible", "PodGroupPostFilter")),
    "QueueingService": (queueing_pb2, ("QueueingHints", "SortKeys")),
}


class Scripted:
    """Answers each call with what `replies` says: a message, an awaitable function, or nothing special."""

    def __init__(self, *points, **capabilities):
        interest = capabilities.pop("state", identity_pb2.StateInterest(nodes=True, pods=True))
        self.capabilities = identity_pb2.Capabilities(
            extension_points=points or POINTS, state=interest, **capabilities
        )
        self.replies = {
            "Handshake": identity_pb2.HandshakeResponse(
                name=NAME, supported_versions=[1], capabilities=self.capabilities
            )
        }
        self.asked = []
        self.synced = []
        self.refusals = []
        """Nacks, each for the next delta."""
        self.held = state_pb2.Held()
        self.frames = []
        """What came over ttrpc."""
        self.writers = []
        """Connections to the second socket."""
        self.on_ttrpc = None
        self._serving = set()

    def requests(self, name):
        """The requests of that call."""
        return [request for asked, request in self.asked if asked == name]

    async def unary(self, name, request, context):
        """Answer a call."""
        self.asked.append((name, request))
        reply = self.replies.get(name)
        if callable(reply):
            reply = await reply(request, context)
        return RESPONSES[name]() if reply is None else reply

    async def sync(self, requests, _context):
        """Take the state as it comes, refusing what the test wants refused."""
        yield state_pb2.SyncResponse(held=self.held)
        async for request in requests:
            body = request.WhichOneof("body")
            self.synced.append(request)
            if body == "delta" and self.refusals:
                yield state_pb2.SyncResponse(nack=self.refusals.pop(0))
            elif body in {"delta", "commit"}:
                generation = getattr(request, body).generation
                self.held = state_pb2.Held(epoch=self.held.epoch, generation=generation)
                yield state_pb2.SyncResponse(ack=state_pb2.Ack(generation=generation))
            elif body == "begin":
                self.held = state_pb2.Held(epoch=request.begin.epoch, generation=self.held.generation)
                if request.begin.HasField("resume_generation"):
                    yield state_pb2.SyncResponse(ack=state_pb2.Ack(generation=self.held.generation))

    @asynccontextmanager
    async def served(self, path, mode=0o600):
        """Serve it on a unix socket."""
        server = grpc.aio.server()
        for service, (module, names) in UNARY.items():
            table = {name: _unary(self, name, getattr(module, f"{name}Request")) for name in names}
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(f"berth.plugin.v1.{service}", table),)
            )
        sync = grpc.stream_stream_rpc_method_handler(
            self.sync,
            request_deserializer=state_pb2.SyncRequest.FromString,
            response_serializer=state_pb2.SyncResponse.SerializeToString,
        )
        handlers = grpc.method_handlers_generic_handler("berth.plugin.v1.StateService", {"Sync": sync})
        server.add_generic_rpc_handlers((handlers,))
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        path.chmod(mode)
        try:
            async with self._serving_ttrpc(path, mode):
                yield server
        finally:
            await server.stop(None)
            path.unlink(missing_ok=True)

    @asynccontextmanager
    async def _serving_ttrpc(self, path, mode):
        """Serve the second socket where one is announced."""
        if not self.capabilities.HasField("ttrpc_socket"):
            yield
            return
        second = path.with_name(self.capabilities.ttrpc_socket)
        server = await asyncio.start_unix_server(self._ttrpc, second)
        second.chmod(mode)
        try:
            yield
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving)
            second.unlink(missing_ok=True)

    async def _ttrpc(self, reader, writer):
        """Let `on_ttrpc` take the connection, or answer its frames one after the other."""
        self._serving.add(asyncio.current_task())
        self.writers.append(writer)
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            await (self.on_ttrpc or self._answer_frames)(reader, writer)
        writer.transport.abort()

    async def _answer_frames(self, reader, writer):
        while True:
            length, number, _, _ = HEADER.unpack(await reader.readexactly(HEADER.size))
            request = ttrpc_pb2.TtrpcRequest.FromString(await reader.readexactly(length))
            self.frames.append(request)
            writer.write(framed(number, await self._framed_answer(request)))

    async def _framed_answer(self, frame):
        kind = next(
            getattr(module, f"{frame.method}Request")
            for module, names in UNARY.values()
            if frame.method in names
        )
        reply = await self.unary(frame.method, kind.FromString(frame.payload), None)
        if isinstance(reply, ttrpc_pb2.TtrpcResponse):
            return reply
        return ttrpc_pb2.TtrpcResponse(payload=reply.SerializeToString())


RESPONSES = {name: getattr(module, f"{name}Response") for module, names in UNARY.values() for name in names}


def _unary(plugin, name, request):
    async def answer(message, context):
        return await plugin.unary(name, message, context)

    def serialize(reply):
        return reply if isinstance(reply, bytes) else reply.SerializeToString()

    return grpc.unary_unary_rpc_method_handler(
        answer, request_deserializer=request.FromString, response_serializer=serialize
    )


def framed(number, response):
    """An answer as it travels."""
    message = response.SerializeToString()
    return HEADER.pack(len(message), number, RESPONSE, 0) + message


def no_watch(_kind, _handler):
    """A watch that brings nothing; what ends it."""
    return lambda: None


def a_queue(profiles, pending=None, **settings):
    """A queue of these profiles, which may be filled later; pending pods are those of the watch."""
    return SchedulingQueue(
        PrioritySort(None, None).less,
        profiles,
        ManualClock(1000.0),
        pod_lister=lambda namespace, name: (pending or {}).get((namespace, name)),
        **settings,
    )


def rejected(queue, pod, *plugins):
    """The pod, tried and turned down by these plugins, its backoff over."""
    queue.add(pod)
    record = queue.pop_specific(pod) or queue.pop()
    record.unschedulable_plugins = set(plugins)
    queue.add_unschedulable_if_not_present(record)
    queue._clock.seconds += 60
    return record


class Harness:
    """Cache, snapshot and host of a profile with one plugin; with a background, it orders the queue."""

    def __init__(
        self,
        path,
        *,
        name=NAME,
        policy=None,
        timeout_seconds=PATIENCE_SECONDS,
        exempt=None,
        arguments=None,
        background=None,
        **surroundings,
    ):
        policies = {**DEFAULT_POLICY, **(policy or {})}
        spec = SidecarSpec(
            name,
            f"unix:{path}",
            Duration(int(timeout_seconds * 1e9)),
            failure_policy=policies,
            exempt_pods=exempt,
        )
        profile = SimpleNamespace(
            scheduler_name=PROFILE,
            points={ExtensionPoint.FILTER: [(name, 1)]},
            args={name: {"a": 1} if arguments is None else arguments},
        )
        self.cache, self.snapshot, self.writer = Cache(), Snapshot(), RememberingWriter()
        self.pending, profiles, self.watch = {}, {}, no_watch
        self.queue = a_queue(
            profiles,
            self.pending,
            ask_hints=lambda questions, _: self.host.ask_hints(questions),
            background=background,
            sort_key=self._place if background else None,
        )
        self.host = PluginHost(
            [spec],
            [profile],
            cache=self.cache,
            snapshot=self.snapshot,
            answers=EquivalenceCache(self.snapshot),
            queue=self.queue,
            waiting_pods={},
            sampled=lambda _: True,
            watch=self._start_watch,
            rewire=lambda _: None,
            **surroundings,
        )
        self.handle = make_handle(self.snapshot, writer=self.writer)
        self.plugin = self.host.factories()[name](None, self.handle)
        sorter = self.plugin if background else None
        self.hints = build_hint_map([self.plugin])
        profiles[PROFILE] = QueueProfile([], self.hints, sorter)
        self.connection = self.host.connections[name]
        self._decode_node = self.host.nodes.decoding(decoder(Node))
        self._decode_pod = self.host.pods.decoding(decode_pod)

    def _place(self, record):
        return self.plugin.sort_key(record)

    def _start_watch(self, kind, handler):
        return self.watch(kind, handler)

    def add_nodes(self, *names, **fields):
        """Bring nodes, as a watch does."""
        for name in names:
            document = documents.make_node(name, **fields)
            self.cache.add_node(self._decode_node(msgspec.json.encode(document)))
        self.step()

    def pod(self, name="p", **fields):
        """A pod that the watch has brought."""
        document = documents.make_pod(name, **fields)
        document["spec"]["schedulerName"] = PROFILE
        return self._decode_pod(msgspec.json.encode(document))

    def step(self):
        """Take over into the snapshot what changed."""
        self.cache.update_snapshot(self.snapshot)

    async def up(self):
        """Wait until the plugin can be asked."""
        await until(lambda: self.connection.ready)

    def allow(self, seconds=PATIENCE_SECONDS):
        """What each call may take from now on; as long as a test waits, no busy machine makes one late."""
        self.connection.seconds_for = lambda _: seconds

    async def filter(self, pod=None, state=None):
        """The plugin's codes."""
        answer = self.plugin.filter(state or cycle(), pod or self.pod(), self.snapshot)
        return await answer if isawaitable(answer) else answer

    async def score(self, state, pod, nodes=None):
        """The plugin's raw scores, at hand or asked for."""
        answer = self.plugin.score(state, pod, nodes or self.snapshot)
        return await answer if isawaitable(answer) else answer


def cycle(attempt=1):
    """A cycle's state with its record."""
    pod = decode_pod(msgspec.json.encode(documents.make_pod("p")))
    state = CycleState()
    state.write(CycleRecord, CycleRecord(pod, PROFILE, attempt, b"t" * 16, b"s" * 8, 0, 0, 0))
    return state


@asynccontextmanager
async def hosted(plugin, *nodes, mode=0o600, **options):
    """The plugin served, and a host that has its address."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        path = Path(folder, "p.sock")
        async with plugin.served(path, mode), running(Harness(path, **options), *nodes) as harness:
            yield harness


@asynccontextmanager
async def running(harness, *nodes):
    """The host's work for as long as the test lasts."""
    harness.add_nodes(*(nodes or ("n0", "n1", "n2")))
    tasks = [asyncio.create_task(work) for _, work in harness.host.work()]
    try:
        yield harness
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition):
    """Wait for what other tasks bring about."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


def passing(request, **changes):
    """A FilterScore response that lets every node pass and scores all alike."""
    answer = scheduling_pb2.FilterResponse(
        generation=request.call.generation, status=SUCCESS, verdicts=scheduling_pb2.Verdicts(all=0)
    )
    score = scheduling_pb2.ScoreResponse(
        generation=request.call.generation,
        status=SUCCESS,
        scores=scheduling_pb2.Scores(all=7, normalization=scheduling_pb2.NORMALIZATION_NONE),
    )
    for field, value in changes.items():
        target = answer if hasattr(answer, field) and field != "scores" else score
        if value is None:
            target.ClearField(field)
        elif hasattr(value, "CopyFrom"):
            getattr(target, field).CopyFrom(value)
        else:
            setattr(target, field, value)
    return scheduling_pb2.FilterScoreResponse(filter=answer, score=score)
