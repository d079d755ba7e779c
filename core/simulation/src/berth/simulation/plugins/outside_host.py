"""The sidecar host and the extenders of a simulation: each call is made in real time.

A plugin that uses the clock has the virtual time by then.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import msgspec

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.config.profiles import ResolvedProfile
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.extender import ExtenderVerdicts, Victims
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.extender import ExtenderError, HttpExtender
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.transport.sent_call import SentCall
from berth.out_of_tree.versions import PluginVersion
from berth.simulation.plugins.plugin_calls import OK, CallCounts
from berth.simulation.plugins.real_time_loop import RealTimeLoop
from berth_plugin_proto import identity_pb2, queueing_pb2

R = TypeVar("R")
LOOK_SECONDS = 0.002
HEAR_SECONDS = 1.0
"""How long what a plugin has said by itself may be on its way."""
MAX_LOST = 10
"""After so many things that a plugin says it has said, and that never came, it is not waited for again."""
MICROS = 1_000_000
Heard = list[tuple[int, bool]]
"""For each plugin the newest step of its state, and whether it is there."""


class OutsideCaller(Caller, msgspec.Struct, frozen=True, eq=False):
    """Calls one plugin while virtual time stands still."""

    outside: RealTimeLoop
    unix_micros: Callable[[], int]
    """The virtual time."""

    def ask(self, name: str, request: Any, state: CycleState, read: Callable[[Any], R]) -> SentCall[R]:
        """As Caller.ask; the answer has arrived when this returns."""

        async def made() -> R:
            return await Caller.ask(self, name, request, state, read)

        answered = asyncio.get_running_loop().create_future()
        try:
            answered.set_result(self.outside.run(self._in_time(made())))
        except SidecarError as error:
            answered.set_exception(error)
        return SentCall(answered, ExitStack(), _given)

    async def ask_queueing(self, name: str, request: Any, read: Callable[[Any], R]) -> R:
        """As Caller.ask_queueing."""
        return self.outside.run(self._in_time(Caller.ask_queueing(self, name, request, read)))

    async def _in_time(self, call: Coroutine[Any, Any, R]) -> R:
        """Make the call after the plugin received the virtual time, and return its result."""
        now = self.unix_micros()
        if self.connection.unix_micros != now:
            await self.connection.reach(now)
        return await call


async def _given(answered: Awaitable[R]) -> R:
    return await answered


class OutsideHost(PluginHost):
    """A PluginHost that asks nothing ahead, and forwards plugins' requeues to the simulation's loop."""

    def __init__(
        self,
        outside: RealTimeLoop,
        specs: Iterable[SidecarSpec],
        profiles: Iterable[ResolvedProfile],
        **parts: Any,
    ) -> None:
        self._outside = outside
        self._loop = asyncio.get_running_loop()
        self.moved = False
        """Whether a plugin said something since this was last reset."""
        self.wake_at_micros: int | None = None
        """When the next plugin wants to be woken, in virtual time."""
        self._heard: Counter[str] = Counter()
        """The number of what each plugin said last by itself."""
        self._lost: Counter[str] = Counter()
        self._news = asyncio.Event()
        super().__init__(specs, profiles, sampled=lambda _: False, classes_ahead=0, **parts)

    @property
    def speaks(self) -> bool:
        """Whether a plugin may send requeues."""
        return any(self._speaking())

    @property
    def speaks_in_real_time(self) -> bool:
        """Whether one that may do so does not use the clock, so that it may at any moment."""
        return any(not connection.capabilities.clock for connection in self._speaking())

    def _speaking(self) -> Iterator[PluginConnection]:
        requeue = identity_pb2.EXTENSION_POINT_REQUEUE
        return (connection for connection in self.connections.values() if connection.offers(requeue))

    def unix_micros(self) -> int:
        """The virtual time."""
        return round(self._clock.wall() * MICROS)

    async def say_time(self) -> None:
        """Send the virtual time to all plugins, and receive the requeues up to it."""
        wakes = []
        for name, connection in self.connections.items():
            reached = await connection.reach(self.unix_micros())
            if reached is not None:
                await self._hear(name, reached.last_requeue)
                if reached.HasField("wake_at_unix_micros"):
                    wakes.append(reached.wake_at_unix_micros)
        self.wake_at_micros = min(wakes, default=None)

    async def _hear(self, name: str, number: int) -> None:
        """Wait for the plugin's requeues; those that were sent before the stream was open never come."""
        try:
            async with asyncio.timeout(HEAR_SECONDS):
                while self._heard[name] < number and self._lost[name] < MAX_LOST:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            self._heard[name] = number
            self._lost[name] += 1

    def heard(self) -> Heard:
        """The state that plugins have been sent."""
        return [(each.feed.generation, each.connection.ready) for each in self.versions.values()]

    def caller(self, version: PluginVersion, profile: str) -> Caller:
        """The caller of that version on behalf of that profile."""
        return OutsideCaller(
            version.connection, version.feed, profile, self._around, self._outside, self.unix_micros
        )

    async def in_step(self, seconds: float) -> None:
        """Wait until plugins have acknowledged the newest state, up to that limit."""
        pairs = [(version.connection, version.feed) for version in self.versions.values()]
        ends = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < ends and any(  # noqa: ASYNC110 - steps have no event
            connection.ready and connection.acknowledged < feed.generation for connection, feed in pairs
        ):
            await asyncio.sleep(LOOK_SECONDS)

    def lacking(self, name: str) -> list[str]:
        """The kinds that the plugin watches and the input does not have."""
        wanted = self.versions[name].connection.capabilities.state.resources
        return [each.resource for each in wanted if not any(self._objects.upserts([each]))]

    def _on_ready(self, connection: PluginConnection) -> None:
        take = super()._on_ready
        self._in_simulation(lambda: take(connection))

    def _on_requeue(self, connection: PluginConnection, response: queueing_pb2.RequeueResponse) -> None:
        self._heard[connection.spec.name] = response.number
        self._news.set()
        take = super()._on_requeue
        self._in_simulation(lambda: take(connection, response))

    def _in_simulation(self, news: Callable[[], None]) -> None:
        self.moved = True
        self._loop.call_soon_threadsafe(news)


class OutsideExtender:
    """An extender, called while virtual time stands still. Implements berth.framework.extender.Extender."""

    def __init__(self, extender: HttpExtender, outside: RealTimeLoop, counts: CallCounts) -> None:
        self._extender = extender
        self._outside = outside
        self._counts = counts
        self.name = extender.name
        self.ignorable = extender.ignorable
        self.weight = extender.weight
        self.filters = extender.filters
        self.prioritizes = extender.prioritizes
        self.preempts = extender.preempts
        self.binds = extender.binds
        self.interested = extender.interested

    async def filter(self, attempt: Attempt, nodes: Sequence[Node]) -> ExtenderVerdicts:
        """Which of the nodes pass. Raises: ExtenderError."""
        return self._asked("filter", self._extender.filter(attempt, nodes), self.ignorable)

    def prioritize(self, attempt: Attempt, nodes: Sequence[Node]) -> Awaitable[Mapping[str, int]]:
        """A score by node name."""
        return asyncio.create_task(self._scores(attempt, nodes), name=f"scores of {self.name}")

    async def _scores(self, attempt: Attempt, nodes: Sequence[Node]) -> Mapping[str, int]:
        async def scores() -> Mapping[str, int]:
            return await self._extender.prioritize(attempt, nodes)

        # Without its scores those of others decide, whether it is ignorable or not.
        return self._asked("prioritize", scores(), passes=True)

    async def preempt(self, attempt: Attempt, victims: Mapping[str, Victims]) -> dict[str, Victims]:
        """The candidate nodes that are left. Raises: ExtenderError."""
        return self._asked("preempt", self._extender.preempt(attempt, victims), self.ignorable)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Never called: extenders that bind are refused."""
        raise AssertionError(f"{self.name} binds {pod.key} to {node_name}: {state}")

    def _asked(self, verb: str, work: Coroutine[Any, Any, R], passes: bool) -> R:
        try:
            answer = self._outside.run(work)
        except ExtenderError:
            self._counts.called(self.name, verb, "failed", 0.0)
            if passes:
                self._counts.ignored(self.name, verb)
            raise
        self._counts.called(self.name, verb, OK, 0.0)
        return answer
