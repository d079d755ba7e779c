"""The reference plugin, served with one behaviour broken."""

import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from berth.conformance import CHECKS, Options, Outcome, verify
from berth_sdk._generated import state_pb2
from berth_sdk.serving import Server
from berth_sdk.sync import Stream
from tests.unit.conformance.reference import Slots


async def as_it_is(_server, _name, request, proceed):
    """Answer a call as the reference does."""
    return await proceed(request)


async def taken(stream, request):
    """Take a message of the state stream as the reference does."""
    return await stream.answer(request)


@dataclass
class Fault:
    """What is broken; everything else is as the reference has it.

    `call(server, name, request, proceed)` answers each call; `take(stream, request)` each message of a state
    stream; `plugin` is the author's part; `server` wraps what is left.
    """

    check: str
    call: object = as_it_is
    take: object = taken
    plugin: type = Slots
    server: type | None = None
    supersedes: bool = True
    held: object = None
    options: dict = field(default_factory=dict)


class BrokenServer(Server):
    """The SDK's server with a fault between the wire and the plugin."""

    def __init__(self, fault, address):
        super().__init__(fault.plugin(), address)
        self.fault = fault

    async def _called(self, name, function, request, metadata):
        inner = super()._called

        async def proceed(changed):
            return await inner(name, function, changed, metadata)

        return await self.fault.call(self, name, request, proceed)

    async def _sync(self, requests, context):
        del context
        session = self.session
        stream = Stream(session)
        session.stream = stream
        held = state_pb2.Held(epoch=session.mirror.epoch, generation=session.mirror.generation)
        yield state_pb2.SyncResponse(held=held if self.fault.held is None else self.fault.held(held))
        async for request in requests:
            if self.fault.supersedes and session.stream is not stream:
                return
            response = await self.fault.take(stream, request)
            if response is not None:
                yield response


@asynccontextmanager
async def served(fault):
    """The plugin with that fault, and the options to verify it."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        address = f"unix:{Path(folder, 'p.sock')}"
        server = (fault.server or BrokenServer)(fault, address)
        await server.start()
        options = Options(address, node_count=6, many_nodes=60, seconds=2.0, stop=lambda: server.stop(0))
        try:
            yield replace(options, **fault.options)
        finally:
            await server.stop(0)


async def verified(fault):
    """What came of all checks, by id."""
    async with served(fault) as options:
        _, results = await verify(options, CHECKS.values())
    return {result.check.id: result for result in results}


def failed(results):
    """The checks that failed, with what they said."""
    return {name: result.text for name, result in results.items() if result.outcome is Outcome.FAIL}
