"""One plugin's connection: dial, handshake, configure, synchronize its state, reconnect when it breaks.

    waiting --socket answers--> greeting --configured--> syncing --first ack--> ready
       ^                           |                        |                     |
       +------- backoff <----------+------------------------+--- broken, or late -+

The scheduler starts and schedules without its plugins: this runs concurrently with it. A plugin that lets
calls run into their deadline is disconnected, and the next handshake shows whether it is back; then one late
call is enough to disconnect it, until one is answered. Invalid responses open its circuit (`breaker.py`).

Source: docs/protocol.md "Order of calls", "Failures".
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from enum import Enum
from typing import Any
from uuid import uuid4

import grpc.aio
import msgspec

from berth.config.out_of_tree.sidecars import SidecarSpec, is_unix, socket_path
from berth.framework.clock import SYSTEM_CLOCK, Clock
from berth.framework.pacing import Backoff, Pauses, TokenBucket
from berth.out_of_tree.cluster_state.state_feed import StateFeed
from berth.out_of_tree.cluster_state.state_stream import StateStream, deadline
from berth.out_of_tree.connections.breaker import Breaker, Circuit
from berth.out_of_tree.connections.conditions import Conditions, ConditionType, OnChange
from berth.out_of_tree.connections.event_interest import Interest, compiled
from berth.out_of_tree.connections.last_failures import LastFailures
from berth.out_of_tree.connections.profile_arguments import ProfileArguments
from berth.out_of_tree.connections.requeue_stream import paced
from berth.out_of_tree.errors import NotConnectedError, ProtocolError, RefusedError, SidecarError
from berth.out_of_tree.handshake import configure, handshake, release
from berth.out_of_tree.limits import MESSAGES_A_SECOND, MESSAGES_AT_ONCE, REFUSAL_BYTES
from berth.out_of_tree.plugin_log import PluginLog
from berth.out_of_tree.plugin_text import bounded
from berth.out_of_tree.time_budget import wanted_seconds
from berth.out_of_tree.transport.call_attributes import PluginEndpoint
from berth.out_of_tree.transport.channels import open_channel
from berth.out_of_tree.transport.recorded_stub import RecordedStub
from berth.out_of_tree.transport.rpc import SERVICE_OF, RpcError
from berth.out_of_tree.transport.services import Services, open_services
from berth.out_of_tree.transport.socket_access import shared_folder
from berth.recordings.calls.recording import CallRecording
from berth_plugin_proto import (
    identity_pb2,
    identity_pb2_grpc,
    queueing_pb2,
    queueing_pb2_grpc,
    state_pb2,
)

log = logging.getLogger(__name__)

GREETING_SECONDS = 5.0
FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 2.0
LONGEST_BACKOFF_WHEN_LATE_SECONDS = 30.0
SLOW_SECONDS = 60.0
"""How long a call that ran out of time makes a plugin count as slow."""
LATE_CALLS = 3
"""After so many unanswered calls in a row the host hangs up, so that a plugin that hangs holds up no pod."""


class Phase(Enum):
    """The phase of a connection."""

    WAITING = "waiting"
    GREETING = "greeting"
    SYNCING = "syncing"
    READY = "ready"


class Listeners(msgspec.Struct, frozen=True):
    """Callbacks for what happens on a connection.

    `greeted` is awaited before any state is sent; `answering` is called when its circuit closes again,
    `probing` when an open one lets a call through.
    """

    requeue: Callable[["PluginConnection", queueing_pb2.RequeueResponse], None]
    ready: Callable[["PluginConnection"], None]
    answering: Callable[["PluginConnection"], None]
    probing: Callable[["PluginConnection"], None]
    greeted: Callable[["PluginConnection"], Awaitable[None]]
    condition: OnChange


class PluginConnection:
    """The connection to one plugin; `run` maintains it until it is cancelled.

    `arguments` are by profile. `epoch` is the random name of this connection's state stream: generations are
    compared within one epoch only, and a plugin drops its state when it is sent another. `clock` times the
    circuit breaker.
    """

    def __init__(
        self,
        spec: SidecarSpec,
        feed: StateFeed,
        arguments: Mapping[str, Any],
        listeners: Listeners,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.spec = spec
        self.epoch = uuid4().hex
        self.log = PluginLog(log)
        self.phase = Phase.WAITING
        self.version = ""
        self.last_error = ""
        self.last_failure = ""
        self.failures = LastFailures(spec.name)
        """Those for which a failure policy was asked."""
        self.capabilities = identity_pb2.Capabilities()
        self.endpoint = PluginEndpoint.of(spec, self.capabilities)
        """Where its calls go, as spans name it."""
        self.interests: tuple[Interest, ...] = ()
        self.starts = 0
        """How often a connection came up: what a plugin held before may be gone."""
        self._stubs: dict[str, Any] = {}
        """By the name of the service; none while no call can be made."""
        self.recording: CallRecording | None = None
        """What is shown everything that passes."""
        self.came_up = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once the plugin came up, or was refused, or refused its configuration."""
        self.refusal = ""
        self.arguments = ProfileArguments(arguments, spec)
        self.conditions = Conditions(spec.name, SYSTEM_CLOCK.wall, listeners.condition)
        self.breaker = Breaker(clock.monotonic, self._circuit_turned)
        self._offered: frozenset[int] = frozenset()
        self._seconds: dict[str, float] = {}
        self._feed = feed
        feed.followers.append(self)
        self._listeners = listeners
        self._state = StateStream(
            spec.name,
            self.epoch,
            feed,
            self.log,
            on_ack=self._on_ack,
            exchanged=self._exchanged,
        )
        self._hung_up = asyncio.Event()
        self._identity: identity_pb2_grpc.IdentityServiceAsyncStub | None = None
        self._upcoming: Services | None = None
        self._answered = self._late = 0
        self._last_late: float | None = None
        self._requeues = TokenBucket(MESSAGES_A_SECOND, MESSAGES_AT_ONCE, SYSTEM_CLOCK.monotonic)
        for kind in (
            ConditionType.CONNECTED,
            ConditionType.CONFIGURED,
            ConditionType.SYNCED,
            ConditionType.READY,
        ):
            self.conditions.begin(kind, "Dialling", holds=False)
        self.conditions.begin(ConditionType.CIRCUIT_CLOSED, "NoFailures", holds=True)

    @property
    def ready(self) -> bool:
        """Whether the plugin is connected and its state is synchronized; its circuit may still be open."""
        return self.phase is Phase.READY

    @property
    def hung(self) -> bool:
        """Whether it was disconnected because calls ran into their deadline, and has not come back."""
        return not self.ready and self._late >= LATE_CALLS

    @property
    def slow(self) -> bool:
        """Whether it is connected, and a call ran into its deadline a moment ago."""
        if not self.ready or self._last_late is None:
            return False
        return SYSTEM_CLOCK.monotonic() - self._last_late < SLOW_SECONDS

    @property
    def acknowledged(self) -> int:
        """The newest generation that the plugin acknowledged."""
        return self._state.acknowledged

    def record(self, recording: CallRecording | None) -> None:
        """Show everything that is exchanged from now on to the recording; None ends that."""
        self.recording = recording
        self._show_stubs(self._stubs)
        self._identity = self._shown(self._identity)

    def stub(self, method: str) -> Any:
        """The stub that has the call of that name; None while no call can be made."""
        return self._stubs.get(SERVICE_OF[method])

    def _show_stubs(self, stubs: Mapping[str, Any]) -> None:
        self._stubs = {name: self._shown(stub) for name, stub in stubs.items()}

    def _shown(self, stub: Any) -> Any:
        """The stub, with its calls shown to the recording if there is one."""
        plain = stub.plain if isinstance(stub, RecordedStub) else stub
        return plain if plain is None or self.recording is None else RecordedStub(plain, self.recording)

    def _exchanged(self, message: Any) -> None:
        if self.recording is not None:
            self.recording.exchanged(message)

    def offers(self, point: int) -> bool:
        """Whether the plugin announced that call."""
        return point in self._offered

    def seconds_for(self, method: str) -> float:
        """The call's own deadline, in seconds."""
        known = self._seconds.get(method)
        if known is None:
            known = self._seconds[method] = wanted_seconds(self.spec, self.capabilities, method)
        return known

    def forget_deadlines(self) -> None:
        """Recompute the deadlines of calls, because the entry of the plugin list changed."""
        self._seconds.clear()

    def holds(self, generation: int) -> None:
        """Record that the plugin acknowledged that generation.

        Raises: ProtocolError where there is no such generation yet.
        """
        self._state.holds(generation)

    def in_time(self) -> None:
        """Record an answered call."""
        self._answered += 1
        self._late = 0

    def late(self) -> None:
        """Record a call that ran into its deadline; disconnects the plugin where that keeps happening."""
        self._late += 1
        self._last_late = SYSTEM_CLOCK.monotonic()
        if self._late >= LATE_CALLS and self._stubs:
            self.disconnect(f"{self._late} calls in a row were not answered in time")

    def disconnect(self, why: str) -> None:
        """Disconnect, and connect anew."""
        self._stubs = {}
        self.last_error = why
        self._hung_up.set()

    def failed(self, error: SidecarError) -> None:
        """Record a call with an invalid response, or with none."""
        self.last_failure = str(error)
        self.breaker.failed()

    async def reach(self, unix_micros: int) -> state_pb2.TimeReached | None:
        """Send the host's time to the plugin; None where it does not use the clock, or is disconnected.

        A plugin that is disconnected receives it first after it reconnects.
        """
        if not (self.ready and self.capabilities.clock):
            self._state.hold(unix_micros)
            return None
        try:
            return await self._state.reach(unix_micros)
        except NotConnectedError as error:
            self.disconnect(str(error))
            return None

    @property
    def unix_micros(self) -> int | None:
        """The host's time that was sent to the plugin last."""
        return self._state.unix_micros

    def notify(self) -> None:
        """A new step is to be sent."""
        self._state.notify()

    async def synced_again(self) -> None:
        """Transfer the whole state to a plugin that says that it has none, and wait for its ack."""
        if self._state.in_step.is_set():
            self._state.start_over()
        await self._state.in_step.wait()

    async def configured_again(self, profile: str) -> None:
        """Configure a profile that the plugin does not know.

        Raises: ProtocolError with its errors, NotConnectedError.
        """
        if self._identity is None:
            raise NotConnectedError(self.spec.name, "not connected")
        arguments = self.arguments[profile]
        if problems := await configure(self._identity, self.spec, profile, arguments, []):
            raise RefusedError(self.spec.name, problems)

    async def reconfigure(self, profile: str, arguments: Any) -> None:
        """Configure a profile with new arguments; the old ones stay in force where the plugin refuses them.

        A plugin that is disconnected is configured with them once it reconnects.

        Raises: RefusedError with its errors.
        """
        if self._identity is None:
            self.arguments.want({**self.arguments.wanted(), profile: arguments})
            return
        if problems := await configure(self._identity, self.spec, profile, arguments, []):
            raise RefusedError(self.spec.name, problems)
        self.arguments.taken(profile, arguments)
        self.show_arguments()

    def show_arguments(self) -> None:
        """Set the condition ArgumentsAccepted; unknown for a plugin that is disconnected."""
        if self._identity is None:
            return
        refusals = self.arguments.refusals
        if not refusals:
            self.conditions.put(ConditionType.ARGUMENTS_ACCEPTED, "Accepted", holds=True)
            return
        text = "; ".join(error for errors in refusals.values() for error in errors)
        serving = f"{text}; the arguments before go on serving"
        if self.conditions.put(ConditionType.ARGUMENTS_ACCEPTED, "Refused", serving, holds=False):
            self.log.warning(
                "plugin refuses arguments, goes on with those before plugin=%s err=%s", self.spec.name, text
            )

    async def release(self, profile: str) -> None:
        """Release a profile that no longer uses the plugin."""
        self.arguments.drop(profile)
        self.show_arguments()
        if self._identity is not None:
            await release(self._identity, self.spec, profile)

    async def run(self) -> None:
        """Maintain the connection until this is cancelled."""
        pauses = Pauses(Backoff(FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS))
        late = Pauses(Backoff(FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_WHEN_LATE_SECONDS))
        while True:
            answered, broke_protocol = self._answered, False
            try:
                await self._connected()
            except Exception as error:  # noqa: BLE001 - whatever broke the connection, it is made again
                innermost = _innermost(error)
                broke_protocol = isinstance(innermost, ProtocolError)
                self._broken(innermost)
                _end_if_cancelled()
            # The pause before dialling again grows for a plugin that breaks the protocol again and again.
            if self._answered > answered and not broke_protocol:
                pauses.reset()
                late.reset()
            await asyncio.sleep((late if self._late else pauses).next())

    def _broken(self, error: BaseException) -> None:
        match error:
            case grpc.aio.AioRpcError():
                text = error.details()
            case RpcError():
                text = error.text
            case _:
                text = str(error)
        text = bounded(text or repr(error))
        if self.phase is Phase.READY or text != self.last_error:
            self.log.warning("plugin not connected plugin=%s err=%s", self.spec.name, text)
        self.phase, self.last_error = Phase.WAITING, text
        self._stubs, self._identity, self._upcoming = {}, None, None
        self._state.in_step.clear()
        for kind in (ConditionType.CONNECTED, ConditionType.SYNCED, ConditionType.READY):
            self.conditions.put(kind, "NotConnected", text, holds=False)

    async def _connected(self) -> None:
        """One connection, from dialling to its end."""
        self._hung_up.clear()
        async with open_channel(self.spec) as channel:
            self._look_at_folders()
            async with deadline(self.spec.name, GREETING_SECONDS, "no plugin answers"):
                await channel.channel_ready()
            self.conditions.put(ConditionType.CONNECTED, "Answered", holds=True)
            self.phase = Phase.GREETING
            async with deadline(self.spec.name, GREETING_SECONDS, "the handshake was not answered"):
                await self._greet(channel)
            await self._listeners.greeted(self)
            self.phase = Phase.SYNCING
            await self._follow(channel)

    async def _follow(self, channel: grpc.aio.Channel) -> None:
        """Run the state stream and the call services until one of them breaks."""
        async with AsyncExitStack() as until_then:
            async with deadline(self.spec.name, GREETING_SECONDS, "its calls' socket was not answered"):
                services = await until_then.enter_async_context(
                    open_services(self.spec, channel, self.capabilities)
                )
            self._upcoming = services
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self._listen(channel)), tasks.create_task(self._give_up())]
                if services.run is not None:
                    beside.append(tasks.create_task(services.run()))
                try:
                    await self._state.run(channel, clocked=self.capabilities.clock)
                finally:
                    for task in beside:
                        task.cancel()

    def _look_at_folders(self) -> None:
        if is_unix(self.spec.address):
            shared = shared_folder(socket_path(self.spec.address))
            reason = "SharedFolder" if shared else "NotShared"
            self.conditions.put(ConditionType.SOCKET_PRIVATE, reason, shared, holds=not shared)

    async def _give_up(self) -> None:
        await self._hung_up.wait()
        raise NotConnectedError(self.spec.name, self.last_error)

    async def _greet(self, channel: grpc.aio.Channel) -> None:
        """Do the handshake, and configure every profile that uses the plugin.

        Raises: ProtocolError with all problems.
        """
        identity: identity_pb2_grpc.IdentityServiceAsyncStub = self._shown(
            identity_pb2_grpc.IdentityServiceStub(channel)
        )
        answer, problems = await handshake(identity, self.spec)
        wrong_arguments = await self.arguments.hand_over(
            lambda profile, arguments: configure(identity, self.spec, profile, arguments, problems)
        )
        problems += [error for error in wrong_arguments if error not in problems]
        if problems:
            text = bounded("; ".join(problems), REFUSAL_BYTES)
            self.conditions.put(ConditionType.CONFIGURED, "Refused", text, holds=False)
            if wrong_arguments:
                self.conditions.put(
                    ConditionType.ARGUMENTS_ACCEPTED, "Refused", "; ".join(wrong_arguments), holds=False
                )
            self.refusal = text
            self.settled.set()
            raise ProtocolError(self.spec.name, text)
        self.conditions.put(ConditionType.CONFIGURED, "Accepted", holds=True)
        self._introduced(answer)
        self._identity = identity
        self.show_arguments()

    def _introduced(self, answer: identity_pb2.HandshakeResponse) -> None:
        """Store the plugin's handshake."""
        self.version = answer.version
        self.capabilities = answer.capabilities
        self.endpoint = PluginEndpoint.of(self.spec, answer.capabilities)
        self.interests = compiled(answer.capabilities.events)
        self._offered = frozenset(map(int, answer.capabilities.extension_points))
        self._seconds.clear()
        self._feed.narrow(answer.capabilities.state)
        self.kinds_listed()

    def kinds_listed(self) -> None:
        """Set the condition about watched kinds that can't be listed; the plugin works without them."""
        if self.capabilities.state.resources:
            text = "; ".join(self._feed.overdue())
            reason = "NotListed" if text else "Listed"
            self.conditions.put(ConditionType.KINDS_LISTED, reason, text, holds=not text)

    def _on_ack(self) -> None:
        self.conditions.put(ConditionType.SYNCED, "Acknowledged", holds=True)
        if self.phase is not Phase.READY and self._upcoming is not None:
            self._now_ready(self._upcoming)

    def _now_ready(self, services: Services) -> None:
        self._show_stubs(services.stubs)
        self.phase, self.last_error = Phase.READY, ""
        self.starts += 1
        self.breaker.restarted()
        self.refusal = ""
        self.came_up.set()
        self.settled.set()
        self.log.info("plugin ready plugin=%s generation=%s", self.spec.name, self.acknowledged)
        self.conditions.put(ConditionType.READY, "Synced", holds=True)
        self._listeners.ready(self)

    def _circuit_turned(self, circuit: Circuit) -> None:
        if circuit is Circuit.CLOSED:
            self.log.info("plugin answers again plugin=%s", self.spec.name)
            self.conditions.put(ConditionType.CIRCUIT_CLOSED, "ProbeAnswered", holds=True)
            self._listeners.answering(self)
        elif circuit is Circuit.OPEN:
            seconds = self.breaker.pause_left
            asyncio.get_running_loop().call_later(seconds, self._listeners.probing, self)
            self.log.warning(
                "plugin keeps failing, not called plugin=%s seconds=%.3f err=%s",
                self.spec.name,
                seconds,
                self.last_failure,
            )
            self.conditions.put(ConditionType.CIRCUIT_CLOSED, "KeepsFailing", self.last_failure, holds=False)

    async def _listen(self, channel: grpc.aio.Channel) -> None:
        """Read the plugin's requeue stream."""
        if not self.offers(identity_pb2.EXTENSION_POINT_REQUEUE):
            return
        queueing: queueing_pb2_grpc.QueueingServiceAsyncStub = queueing_pb2_grpc.QueueingServiceStub(channel)
        stream = queueing.Requeue(queueing_pb2.RequeueRequest())
        async for message in paced(self.spec.name, stream, self._requeues, self.log):
            self._exchanged(message)
            self._listeners.requeue(self, message)
        raise ProtocolError(self.spec.name, "ended the requeue stream")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _end_if_cancelled() -> None:
    """End where an end was asked for while the connection broke: a task group then reports the break only.

    Raises: CancelledError.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
