"""The plugin that a recording is replayed to, kept in step with the recorded states.

Calls go to it as the host sends them.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import grpc
import grpc.aio

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.handshake import handshake, readable
from berth.out_of_tree.transport.channels import open_channel
from berth.out_of_tree.transport.rpc import SERVICE_OF
from berth.out_of_tree.transport.services import open_services
from berth.replay.errors import ReplayError
from berth.replay.rows import NodeRows
from berth.replay.steps import Steps, Transfer
from berth_plugin_proto import (
    common_pb2,
    identity_pb2,
    identity_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)


class Guest:
    """A plugin that is connected; `epoch` is one of our own, so that nothing of an earlier replay counts."""

    def __init__(self, spec: SidecarSpec, channel: grpc.aio.Channel, steps: Steps, seconds: float) -> None:
        self.epoch = uuid4().hex
        self.generation = 0
        self.rows = NodeRows()
        self.introduction = identity_pb2.HandshakeResponse()
        self._spec = spec
        self.stubs: Mapping[str, Any] = {}
        """By the name of the service."""
        self._identity: Any = identity_pb2_grpc.IdentityServiceStub(channel)
        self._state: Any = state_pb2_grpc.StateServiceStub(channel)
        self._sync: Any = None
        self._steps = steps
        self._seconds = seconds

    async def greet(self) -> None:
        """Learn what it says of itself. Raises: ReplayError where it is not the plugin recorded."""
        async with self._in_time("the handshake was not answered"):
            self.introduction, problems = await handshake(self._identity, self._spec)
        if problems:
            raise ReplayError(f"{self._spec.address}: {'; '.join(problems)}")

    async def configure(self, request: identity_pb2.ConfigureRequest) -> list[str]:
        """The errors that it finds in a profile's arguments."""
        async with self._in_time("the arguments were not taken"):
            response = readable(self._spec.name, await self._identity.Configure(request))
        return list(response.errors)

    async def ask(self, name: str, request: Any) -> Any:
        """The answer to that call. Raises: RpcError."""
        return await getattr(self.stubs[SERVICE_OF[name]], name)(request, timeout=self._seconds)

    async def advance(self, generation: int) -> None:
        """Let it hold that generation, or what it holds already where that is later.

        Raises: LookupError where the recording does not say how; ReplayError where the plugin refuses.
        """
        for step in self._steps.between(self.generation, generation):
            if isinstance(step, Transfer):
                self.rows = NodeRows()
                await self._write(begin=state_pb2.Begin(epoch=self.epoch))
                for message in step.chunks:
                    self.rows.apply(message.chunk.changes)
                    await self._sync.write(message)
            else:
                self.rows.apply(step.changes)
                await self._write(delta=step)
            self.generation = step.generation
            await self._acknowledged()

    async def reach(self, unix_micros: int) -> None:
        """Let it hold that time, if it uses the clock. Raises: ReplayError."""
        if not self.introduction.capabilities.clock:
            return
        await self._write(time=state_pb2.Time(unix_micros=unix_micros))
        async with self._in_time("the time was not answered"):
            answer = await self._sync.read()
        if answer is grpc.aio.EOF or answer.time_reached.unix_micros != unix_micros:
            raise ReplayError(f"{self._spec.address}: the plugin does not hold the recorded time")

    def brought_by(self, call: common_pb2.Call) -> bool:
        """Whether the call itself carries what leads to its generation."""
        if not call.deltas or self.generation >= call.generation:
            return False
        return call.deltas[0].base_generation <= self.generation and self.generation > 0

    def node_count(self, call: common_pb2.Call) -> int:
        """How many nodes there are once it has taken over what the call carries."""
        return call.deltas[-1].node_count if self.brought_by(call) else len(self.rows.names)

    def carried(self, call: common_pb2.Call) -> None:
        """It has taken over what that call carried."""
        for delta in call.deltas:
            if delta.base_generation == self.generation:
                self.rows.apply(delta.changes)
                self.generation = delta.generation

    async def open(self) -> None:
        """Open the stream of states. Raises: ReplayError."""
        self._sync = self._state.Sync()
        async with self._in_time("the state stream was not answered"):
            readable(self._spec.name, await self._sync.read())

    async def _write(self, **body: Any) -> None:
        await self._sync.write(state_pb2.SyncRequest(**body))

    async def _acknowledged(self) -> None:
        async with self._in_time(f"generation {self.generation} was not acknowledged"):
            while True:
                answer = await self._sync.read()
                if answer is grpc.aio.EOF:
                    raise ReplayError(f"{self._spec.address}: the plugin ended the state stream")
                if answer.HasField("nack"):
                    text = f"refuses the recorded state of generation {self.generation}"
                    raise ReplayError(f"{self._spec.address}: the plugin {text}: {answer.nack.message}")
                if answer.ack.generation >= self.generation:
                    return

    @asynccontextmanager
    async def _in_time(self, otherwise: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError:
            text = f"{self._spec.address}: {otherwise} within {self._seconds:g} s"
            raise ReplayError(text) from None
        except grpc.aio.AioRpcError as error:
            raise ReplayError(f"{self._spec.address}: {error.code().name}: {error.details()}") from None
        except SidecarError as error:
            raise ReplayError(f"{self._spec.address}: {error}") from None


@asynccontextmanager
async def connected(spec: SidecarSpec, steps: Steps, seconds: float) -> AsyncIterator[Guest]:
    """The plugin at that address, introduced.

    Raises: ReplayError where no plugin is there, or another one.
    """
    async with AsyncExitStack() as open_until_the_end:
        try:
            channel = await open_until_the_end.enter_async_context(open_channel(spec))
        except SidecarError as error:
            raise ReplayError(f"{spec.address}: {error}: start the plugin first") from error
        try:
            async with asyncio.timeout(seconds):
                await channel.channel_ready()
        except TimeoutError:
            raise ReplayError(f"no plugin answers at {spec.address}: start the plugin first") from None
        guest = Guest(spec, channel, steps, seconds)
        await guest.greet()
        await guest.open()
        try:
            opened = open_services(spec, channel, guest.introduction.capabilities)
            services = await open_until_the_end.enter_async_context(opened)
        except SidecarError as error:
            raise ReplayError(f"{spec.address}: {error}") from error
        guest.stubs = services.stubs
        if services.run is not None:
            reading = asyncio.ensure_future(services.run())
            open_until_the_end.push_async_callback(_end, reading)
        yield guest


async def _end(reading: "asyncio.Future[None]") -> None:
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
