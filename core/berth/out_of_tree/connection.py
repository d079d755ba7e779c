"""One plugin's connection: dial, shake hands, configure, keep its state in step, start over when it breaks.

    waiting --socket answers--> greeting --configured--> syncing --first ack--> ready
       ^                           |                        |                     |
       +------- backoff <----------+------------------------+--- broken, or late -+

The scheduler starts and schedules without its plugins: everything here happens beside it. A plugin that lets
calls run out of time is hung up on and greeted again, which tells whether it is back; from then on one late
call more is enough, until one is answered.

Source: docs/protocol.md "Order of calls", "State".
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, TypeVar
from uuid import uuid4

import grpc.aio
import msgspec

from berth import __version__
from berth.config.sidecars import SidecarSpec, is_unix, socket_path
from berth.out_of_tree._generated import (
    identity_pb2,
    identity_pb2_grpc,
    queueing_pb2,
    queueing_pb2_grpc,
    scheduling_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from berth.out_of_tree.conversation import Conversation
from berth.out_of_tree.errors import NotConnectedError, ProtocolError
from berth.out_of_tree.socket_access import check_socket
from berth.out_of_tree.state_feed import StateFeed

log = logging.getLogger(__name__)

# Without these pods are tried more often, or fewer find a place; none goes where it must not.
NOT_CALLED: Mapping[int, str] = {
    identity_pb2.EXTENSION_POINT_POST_FILTER: "PostFilter",
    identity_pb2.EXTENSION_POINT_QUEUEING_HINTS: "QueueingHints",
    identity_pb2.EXTENSION_POINT_BIND: "Bind",
    identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS: "FilterOverlays",
}

PROTOCOL_VERSION = 1
GREETING_SECONDS = 5.0
TRANSFER_SECONDS = 30.0
"""How long a plugin may take over a full transfer."""
CALLS_FIRST_SECONDS = 0.02
"""How long the stream holds a step back for a call to carry it: under load, calls carry nearly all."""
FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 2.0
LONGEST_BACKOFF_WHEN_LATE_SECONDS = 30.0
LATE_CALLS = 3
"""After so many unanswered calls in a row the host hangs up, so that a plugin that hangs holds up nobody."""
M = TypeVar("M")
CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


class Phase(Enum):
    """Where a connection stands."""

    WAITING = "waiting"
    GREETING = "greeting"
    SYNCING = "syncing"
    READY = "ready"


class Connection:
    """The connection to one plugin; `run` keeps it up for as long as it is not cancelled.

    `arguments` are by profile. `epoch` names this run of the scheduler.
    """

    def __init__(
        self,
        spec: SidecarSpec,
        feed: StateFeed,
        arguments: Mapping[str, Any],
        on_requeue: Callable[[str, queueing_pb2.RequeueResponse], None],
    ) -> None:
        self.spec = spec
        self.epoch = uuid4().hex
        self.phase = Phase.WAITING
        self.last_error = ""
        self.capabilities = identity_pb2.Capabilities()
        self._offered: frozenset[int] = frozenset()
        self.acknowledged = 0
        self.starts = 0
        """How often a connection came up: what a plugin held before may be gone."""
        self.scheduling: Any = None
        """The generated stub, or a Conversation that stands for it; None while nobody can be asked."""
        self.queueing: queueing_pb2_grpc.QueueingServiceAsyncStub | None = None
        self._feed = feed
        self._arguments = arguments
        self._on_requeue = on_requeue
        self.came_up = asyncio.Event()
        self._changed = asyncio.Event()
        self._in_step = asyncio.Event()
        self._hung_up = asyncio.Event()
        self._identity: identity_pb2_grpc.IdentityServiceAsyncStub | None = None
        self._transfer_wanted = False
        self._answered = self._late = 0

    @property
    def ready(self) -> bool:
        """Whether the plugin can be asked."""
        return self.phase is Phase.READY

    def offers(self, point: int) -> bool:
        """Whether the plugin announced that call."""
        return point in self._offered

    def holds(self, generation: int) -> None:
        """The plugin has shown that it holds that generation.

        Raises: ProtocolError where there is no such generation yet.
        """
        if generation > self._feed.generation:
            text = f"it holds generation {generation}, the newest is {self._feed.generation}"
            raise ProtocolError(self.spec.name, text)
        self.acknowledged = max(self.acknowledged, generation)

    def in_time(self) -> None:
        """A call was answered."""
        self._answered += 1
        self._late = 0

    def late(self) -> None:
        """A call ran out of time; hangs up where that keeps happening."""
        self._late += 1
        if self._late >= LATE_CALLS and self.scheduling is not None:
            self.scheduling = self.queueing = None
            self.last_error = f"{self._late} calls in a row were not answered in time"
            self._hung_up.set()

    async def synced_again(self) -> None:
        """Wait until the plugin, which says that it holds nothing, has the whole state."""
        if self._in_step.is_set():
            self._lost_step()
        await self._in_step.wait()

    async def configured_again(self, profile: str) -> None:
        """Configure a profile that the plugin says it does not know.

        Raises: ProtocolError with its errors, NotConnectedError.
        """
        if self._identity is None:
            raise NotConnectedError(self.spec.name, "not connected")
        if problems := await self._configure(self._identity, profile, []):
            raise ProtocolError(self.spec.name, "; ".join(problems))

    def notify(self) -> None:
        """There is a new delta to send."""
        self._changed.set()

    async def run(self) -> None:
        """Connect, stay connected, connect again."""
        pause = FIRST_BACKOFF_SECONDS
        while True:
            answered = self._answered
            try:
                await self._connected()
            except Exception as error:  # noqa: BLE001 - whatever broke the connection, it is made again
                self._broken(_innermost(error))
                _end_if_cancelled()
            longest = LONGEST_BACKOFF_WHEN_LATE_SECONDS if self._late else LONGEST_BACKOFF_SECONDS
            was_useful = self._answered > answered
            pause = FIRST_BACKOFF_SECONDS if was_useful else min(2 * pause, longest)
            await asyncio.sleep(pause)

    def _broken(self, error: BaseException) -> None:
        text = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
        if self.phase is Phase.READY or text != self.last_error:
            log.warning("plugin not connected plugin=%s error=%s", self.spec.name, text or repr(error))
        self.phase, self.last_error = Phase.WAITING, text or repr(error)
        self.scheduling = self.queueing = self._identity = None
        self._in_step.clear()

    async def _connected(self) -> None:
        """One connection from dialling to its end."""
        self._hung_up.clear()
        if is_unix(self.spec.address):
            check_socket(self.spec.name, socket_path(self.spec.address))
        async with grpc.aio.insecure_channel(_target(self.spec.address), CHANNEL_OPTIONS) as channel:
            async with self._within(GREETING_SECONDS, "nobody answers"):
                await channel.channel_ready()
            self.phase = Phase.GREETING
            async with self._within(GREETING_SECONDS, "the handshake was not answered"):
                await self._greet(channel)
            self.phase = Phase.SYNCING
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self._listen(channel)), tasks.create_task(self._give_up())]
                scheduling: Any = scheduling_pb2_grpc.SchedulingServiceStub(channel)
                if self.capabilities.converse:
                    scheduling = Conversation(scheduling)
                    beside.append(tasks.create_task(scheduling.run()))
                try:
                    await self._keep_in_step(channel, scheduling)
                finally:
                    for task in beside:
                        task.cancel()

    async def _give_up(self) -> None:
        await self._hung_up.wait()
        raise NotConnectedError(self.spec.name, self.last_error)

    async def _greet(self, channel: grpc.aio.Channel) -> None:
        """Shake hands and configure every profile that uses the plugin.

        Raises: ProtocolError with everything that is wrong.
        """
        identity: identity_pb2_grpc.IdentityServiceAsyncStub = identity_pb2_grpc.IdentityServiceStub(channel)
        request = identity_pb2.HandshakeRequest(
            host_name="berth", host_version=__version__, supported_versions=[PROTOCOL_VERSION]
        )
        answer = _readable(self.spec.name, await identity.Handshake(request))
        problems = _problems(self.spec, answer)
        for profile in self._arguments:
            errors = await self._configure(identity, profile, problems)
            problems += [error for error in errors if error not in problems]
        if problems:
            raise ProtocolError(self.spec.name, "; ".join(problems))
        self.capabilities = answer.capabilities
        self._offered = frozenset(map(int, answer.capabilities.extension_points))
        for point in sorted(self._offered & NOT_CALLED.keys()):
            log.warning(
                "extension point not called yet plugin=%s point=%s", self.spec.name, NOT_CALLED[point]
            )
        self._feed.narrow(answer.capabilities.state)
        self._identity = identity

    async def _configure(
        self, identity: "identity_pb2_grpc.IdentityServiceAsyncStub", profile: str, problems: list[str]
    ) -> list[str]:
        """Hand over one profile's arguments; what the plugin finds wrong that we did not tell it."""
        arguments = self._arguments[profile]
        request = identity_pb2.ConfigureRequest(
            protocol_version=PROTOCOL_VERSION,
            handshake_errors=problems,
            profile=profile,
            arguments=None if arguments is None else msgspec.json.encode(arguments),
        )
        response = _readable(self.spec.name, await identity.Configure(request))
        return [f"profile {profile}: {error}" for error in response.errors if error not in problems]

    async def _keep_in_step(self, channel: grpc.aio.Channel, scheduling: Any) -> None:
        """Send the state and every step after it, until the stream breaks."""
        state: state_pb2_grpc.StateServiceAsyncStub = state_pb2_grpc.StateServiceStub(channel)
        stream = state.Sync()
        async with self._within(GREETING_SECONDS, "the state stream was not answered"):
            held = (await _read(stream, self.spec.name)).held
        self.acknowledged = 0
        self._transfer_wanted = False
        sent = await self._begin(stream, held)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_steps(stream, sent))
            await self._read_answers(stream, channel, scheduling)

    async def _begin(self, stream: Any, held: state_pb2.Held) -> int:
        """Resume where the plugin stands, or have everything sent; the generation that it then holds."""
        while not self._feed.generation:
            self._changed.clear()
            await self._changed.wait()
        if held.epoch == self.epoch and self._feed.since(held.generation) is not None:
            begin = state_pb2.Begin(epoch=self.epoch, resume_generation=held.generation)
            await stream.write(state_pb2.SyncRequest(begin=begin))
            return held.generation
        self._transfer_wanted = True
        return 0

    async def _transfer(self, stream: Any) -> int:
        self._transfer_wanted = False
        generation = self._feed.generation
        requests = list(self._feed.transfer())
        await stream.write(state_pb2.SyncRequest(begin=state_pb2.Begin(epoch=self.epoch)))
        for request in requests:
            await stream.write(request)
        return generation

    async def _send_steps(self, stream: Any, sent: int) -> None:
        """Send what no answered call has shown the plugin to hold already."""
        while True:
            self._changed.clear()
            sent = max(sent, self.acknowledged)
            deltas = self._feed.since(sent)
            if self._transfer_wanted or deltas is None:
                sent = await self._transfer(stream)
                continue
            for delta in deltas:
                await stream.write(state_pb2.SyncRequest(delta=delta))
                sent = delta.generation
            await self._changed.wait()
            await asyncio.sleep(CALLS_FIRST_SECONDS)

    async def _read_answers(self, stream: Any, channel: grpc.aio.Channel, scheduling: Any) -> None:
        while True:
            patience = None if self._in_step.is_set() else TRANSFER_SECONDS
            async with self._within(patience, "the state was not acknowledged"):
                answer = await _read(stream, self.spec.name)
            match answer.WhichOneof("body"):
                case "ack":
                    self._acknowledged(answer.ack.generation, channel, scheduling)
                case "nack":
                    self._refused(answer.nack)
                case body:
                    raise ProtocolError(self.spec.name, f"{body or 'nothing'} where an Ack is due")

    def _acknowledged(self, generation: int, channel: grpc.aio.Channel, scheduling: Any) -> None:
        if generation < 1:
            raise ProtocolError(self.spec.name, f"acknowledged generation {generation}")
        self.holds(generation)
        self._in_step.set()
        if self.phase is not Phase.READY:
            self._now_ready(channel, scheduling)

    def _refused(self, nack: state_pb2.Nack) -> None:
        """Transfer everything after a refused step; a refused transfer ends the connection.

        Raises: ProtocolError.
        """
        if self._in_step.is_set() or nack.reason == state_pb2.NACK_REASON_CANNOT_RESUME:
            log.warning("state refused, sent again plugin=%s error=%s", self.spec.name, nack.message)
            self._lost_step()
        elif nack.reason != state_pb2.NACK_REASON_OUT_OF_ORDER:  # that is a step sent before the transfer
            raise ProtocolError(self.spec.name, f"state refused: {nack.message}")

    def _lost_step(self) -> None:
        """Have everything sent again."""
        self.acknowledged = 0
        self._in_step.clear()
        self._transfer_wanted = True
        self._changed.set()

    def _now_ready(self, channel: grpc.aio.Channel, scheduling: Any) -> None:
        self.scheduling = scheduling
        self.queueing = queueing_pb2_grpc.QueueingServiceStub(channel)
        self.phase, self.last_error = Phase.READY, ""
        self.starts += 1
        self.came_up.set()
        log.info("plugin ready plugin=%s generation=%d", self.spec.name, self.acknowledged)
        self._on_requeue(
            self.spec.name,
            queueing_pb2.RequeueResponse(requeue_all=queueing_pb2.AllRejected(), cause="ready"),
        )

    async def _listen(self, channel: grpc.aio.Channel) -> None:
        """Follow what the plugin says of its outside state."""
        if not self.offers(identity_pb2.EXTENSION_POINT_REQUEUE):
            return
        queueing: queueing_pb2_grpc.QueueingServiceAsyncStub = queueing_pb2_grpc.QueueingServiceStub(channel)
        async for response in queueing.Requeue(queueing_pb2.RequeueRequest()):
            self._on_requeue(self.spec.name, _readable(self.spec.name, response))
        raise ProtocolError(self.spec.name, "ended the requeue stream")

    @asynccontextmanager
    async def _within(self, seconds: float | None, otherwise: str) -> AsyncIterator[None]:
        """Raises: NotConnectedError with that text where it takes longer."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise NotConnectedError(self.spec.name, f"{otherwise} within {seconds:g} s") from None


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _end_if_cancelled() -> None:
    """End where an end was asked for while the connection broke: a task group then tells of the break only.

    Raises: CancelledError.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _target(address: str) -> str:
    return f"unix:{socket_path(address)}" if is_unix(address) else address


def _problems(spec: SidecarSpec, answer: identity_pb2.HandshakeResponse) -> list[str]:
    problems = []
    if answer.name != spec.name:
        problems.append(f"the plugin calls itself {answer.name!r}, the list calls it {spec.name!r}")
    if PROTOCOL_VERSION not in answer.supported_versions:
        spoken = ", ".join(map(str, answer.supported_versions)) or "none"
        problems.append(f"it speaks protocol versions {spoken}, this scheduler speaks {PROTOCOL_VERSION}")
    if not answer.capabilities.extension_points:
        problems.append("it announces no extension points")
    if identity_pb2.EXTENSION_POINT_PRE_ENQUEUE in answer.capabilities.extension_points:
        # To pass over a gate would let the pods through that it is to hold back.
        problems.append("it announces PreEnqueue, which this scheduler does not call yet")
    return problems


async def _read(stream: Any, plugin: str) -> state_pb2.SyncResponse:
    """Raises: ProtocolError where the plugin ended the stream."""
    answer = await stream.read()
    if answer is grpc.aio.EOF:
        raise ProtocolError(plugin, "ended the state stream")
    response: state_pb2.SyncResponse = _readable(plugin, answer)
    return response


def _readable(plugin: str, answer: M | None) -> M:
    """The message; gRPC gives None where the bytes are none.

    Raises: ProtocolError.
    """
    if answer is None:
        raise ProtocolError(plugin, "sent a message that can't be read")
    return answer
