"""The reference plugin, served with one behaviour broken."""

import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from berth.conformance import CHECKS, CheckOutcome, VerifyOptions, verify
from berth_plugin_proto import state_pb2
from berth_sdk.dispatch import Dispatch
from berth_sdk.serving import Server
from berth_sdk.sync import Stream
from tests.unit.conformance.reference import Slots


async def as_it_is(_server, _name, request, proceed):
    """Answer a call as the reference does."""
    return await proceed(request)


async def taken(_server, stream, request):
    """Take a message of the state stream as the reference does."""
    return await stream.answer(request)


class BrokenDispatch(Dispatch):
    """Answers calls as the server's fault has it."""

    def __init__(self, server, session, tracing):
        super().__init__(session, tracing)
        self._server = server

    async def call(self, name, function, request, metadata, system="grpc"):
        """Let the fault have its way."""
        self._server.metadata = dict(metadata)

        async def proceed(changed):
            return await super(BrokenDispatch, self).call(name, function, changed, metadata, system)

        return await self._server.fault.call(self._server, name, request, proceed)


class BrokenServer(Server):
    """The SDK's server with a fault between the wire and the plugin; `memory` is the fault's own."""

    def __init__(self, fault, address):
        super().__init__(fault.plugin(), address)
        self.fault = fault
        self.memory = {}
        self.metadata = {}
        self._dispatch = BrokenDispatch(self, self.session, self._tracing)

    @property
    def mirror(self):
        """What the plugin holds."""
        return self.session.mirror

    async def _sync(self, requests, context):
        del context
        stream = Stream(self.session)
        self.session.stream = stream
        held = state_pb2.Held(epoch=self.mirror.epoch, generation=self.mirror.generation)
        yield state_pb2.SyncResponse(held=held if self.fault.held is None else self.fault.held(held))
        async for request in requests:
            if self.fault.supersedes and self.session.stream is not stream:
                return
            response = await self.fault.take(self, stream, request)
            if response is not None:
                yield response


@dataclass
class Fault:
    """What is broken; everything else is as the reference has it.

    `call(server, name, request, proceed)` answers each call; `take(server, stream, request)` each message of
    a state stream; `held` is what a stream begins with; `plugin` is the author's part.
    """

    call: object = as_it_is
    take: object = taken
    held: object = None
    plugin: type = Slots
    server: type = BrokenServer
    supersedes: bool = True
    options: dict = field(default_factory=dict)


@asynccontextmanager
async def served(fault):
    """The plugin with that fault, and the options to verify it."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        server = fault.server(fault, f"unix:{Path(folder, 'p.sock')}")
        await server.start()

        async def stop():
            await server.stop(0)

        options = VerifyOptions(
            server.address, many_nodes=60, in_use=True, seconds=2.0, span_seconds=2.0, stop=stop
        )
        try:
            yield msgspec.structs.replace(options, **fault.options)
        finally:
            await server.stop(0)


async def verified(fault, checks=None):
    """What came of the checks, by id."""
    async with served(fault) as options:
        _, results = await verify(options, CHECKS.values() if checks is None else checks)
    return {result.check.id: result for result in results}


def failed(results):
    """The checks that failed, with what they said."""
    return {name: result.text for name, result in results.items() if result.outcome is CheckOutcome.FAIL}
