"""One plugin's connection: dial, shake hands, configure, keep its state in step, start over when it breaks.

    waiting --socket answers--> greeting --configured--> syncing --first ack--> ready
       ^                           |                        |                     |
       +------- backoff <----------+------------------------+---------------------+

The scheduler starts and schedules without its plugins: everything here happens beside it.

Source: docs/protocol.md "Order of calls", "State".
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any
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
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.state_feed import StateFeed

log = logging.getLogger(__name__)

PROTOCOL_VERSION = 1
GREETING_SECONDS = 5.0
CALLS_FIRST_SECONDS = 0.02
"""How long the stream holds a step back for a call to carry it: under load, calls carry nearly all."""
FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 5.0
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
        self.acknowledged = 0
        self.starts = 0
        """How often a connection came up: what a plugin held before may be gone."""
        self.scheduling: scheduling_pb2_grpc.SchedulingServiceAsyncStub | None = None
        self.queueing: queueing_pb2_grpc.QueueingServiceAsyncStub | None = None
        self._feed = feed
        self._arguments = arguments
        self._on_requeue = on_requeue
        self.came_up = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether the plugin can be asked."""
        return self.phase is Phase.READY

    def offers(self, point: int) -> bool:
        """Whether the plugin announced that call."""
        return point in set(map(int, self.capabilities.extension_points))

    def holds(self, generation: int) -> None:
        """The plugin has shown that it holds that generation."""
        self.acknowledged = max(self.acknowledged, generation)

    def notify(self) -> None:
        """There is a new delta to send."""
        self._changed.set()

    async def run(self) -> None:
        """Connect, stay connected, connect again."""
        pause = FIRST_BACKOFF_SECONDS
        while True:
            starts = self.starts
            try:
                await self._connected()
            except Exception as error:  # noqa: BLE001 - whatever broke the connection, it is made again
                self._broken(_innermost(error))
            was_up = self.starts > starts
            pause = FIRST_BACKOFF_SECONDS if was_up else min(2 * pause, LONGEST_BACKOFF_SECONDS)
            await asyncio.sleep(pause)

    def _broken(self, error: BaseException) -> None:
        text = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
        if self.phase is Phase.READY or text != self.last_error:
            log.warning("plugin not connected plugin=%s error=%s", self.spec.name, text or repr(error))
        self.phase, self.last_error = Phase.WAITING, text or repr(error)
        self.scheduling = self.queueing = None

    async def _connected(self) -> None:
        """One connection from dialling to its end."""
        async with grpc.aio.insecure_channel(_target(self.spec.address), CHANNEL_OPTIONS) as channel:
            async with asyncio.timeout(GREETING_SECONDS):
                await channel.channel_ready()
                self.phase = Phase.GREETING
                await self._greet(channel)
            self.phase = Phase.SYNCING
            async with asyncio.TaskGroup() as tasks:
                requeue = tasks.create_task(self._listen(channel))
                try:
                    await self._keep_in_step(channel)
                finally:
                    requeue.cancel()

    async def _greet(self, channel: grpc.aio.Channel) -> None:
        """Shake hands and configure every profile that uses the plugin.

        Raises: ProtocolError with everything that is wrong.
        """
        identity: identity_pb2_grpc.IdentityServiceAsyncStub = identity_pb2_grpc.IdentityServiceStub(channel)
        answer = await identity.Handshake(
            identity_pb2.HandshakeRequest(
                host_name="berth", host_version=__version__, supported_versions=[PROTOCOL_VERSION]
            )
        )
        problems = _problems(self.spec, answer)
        for profile, arguments in self._arguments.items():
            response = await identity.Configure(
                identity_pb2.ConfigureRequest(
                    protocol_version=PROTOCOL_VERSION,
                    handshake_errors=problems,
                    profile=profile,
                    arguments=None if arguments is None else msgspec.json.encode(arguments),
                )
            )
            problems += [f"profile {profile}: {error}" for error in response.errors]
        if problems:
            raise ProtocolError(self.spec.name, "; ".join(problems))
        self.capabilities = answer.capabilities
        self._feed.wanted = answer.capabilities.state

    async def _keep_in_step(self, channel: grpc.aio.Channel) -> None:
        """Send the state and every step after it, until the stream breaks."""
        state: state_pb2_grpc.StateServiceAsyncStub = state_pb2_grpc.StateServiceStub(channel)
        stream = state.Sync()
        async with asyncio.timeout(GREETING_SECONDS):
            held = (await _read(stream, self.spec.name)).held
        self.acknowledged = 0
        sent = await self._begin(stream, held)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_steps(stream, sent))
            await self._read_answers(stream, channel)

    async def _begin(self, stream: Any, held: state_pb2.Held) -> int:
        """Resume where the plugin stands, or send everything; the generation sent."""
        while not self._feed.generation:
            await self._next_step()
        if held.epoch == self.epoch and self._feed.since(held.generation) is not None:
            begin = state_pb2.Begin(epoch=self.epoch, resume_generation=held.generation)
            await stream.write(state_pb2.SyncRequest(begin=begin))
            return held.generation
        return await self._transfer(stream)

    async def _transfer(self, stream: Any) -> int:
        generation = self._feed.generation
        requests = list(self._feed.transfer())
        await stream.write(state_pb2.SyncRequest(begin=state_pb2.Begin(epoch=self.epoch)))
        for request in requests:
            await stream.write(request)
        return generation

    async def _send_steps(self, stream: Any, sent: int) -> None:
        """Send what no answered call has shown the plugin to hold already."""
        while True:
            sent = max(sent, self.acknowledged)
            deltas = self._feed.since(sent)
            if deltas is None:
                sent = await self._transfer(stream)
                continue
            for delta in deltas:
                await stream.write(state_pb2.SyncRequest(delta=delta))
                sent = delta.generation
            await self._next_step()
            await asyncio.sleep(CALLS_FIRST_SECONDS)

    async def _read_answers(self, stream: Any, channel: grpc.aio.Channel) -> None:
        while True:
            answer = await _read(stream, self.spec.name)
            if answer.HasField("nack"):
                raise ProtocolError(self.spec.name, f"state refused: {answer.nack.message}")
            self.holds(answer.ack.generation)
            if self.phase is not Phase.READY:
                self._now_ready(channel)

    def _now_ready(self, channel: grpc.aio.Channel) -> None:
        self.scheduling = scheduling_pb2_grpc.SchedulingServiceStub(channel)
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
            self._on_requeue(self.spec.name, response)

    async def _next_step(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


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
    return problems


async def _read(stream: Any, plugin: str) -> state_pb2.SyncResponse:
    """Raises: ProtocolError where the plugin ended the stream."""
    answer = await stream.read()
    if answer is grpc.aio.EOF:
        raise ProtocolError(plugin, "ended the state stream")
    response: state_pb2.SyncResponse = answer
    return response
