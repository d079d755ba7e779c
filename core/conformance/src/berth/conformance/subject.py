"""The plugin under test, and the connection to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec

from berth.config.out_of_tree.sidecars import PluginTls, SidecarSpec
from berth.conformance.announced import Announced, announced
from berth.conformance.errors import UnmetError, UnsuitableError
from berth.conformance.samples import Document, make_nodes, make_pods
from berth.conformance.tried import TriedAnswers
from berth.out_of_tree.errors import NotConnectedError
from berth.out_of_tree.transport.channels import open_channel
from berth.out_of_tree.transport.conversation import Conversation
from berth.out_of_tree.transport.rpc import REASON_KEY, RpcError
from berth.out_of_tree.transport.ttrpc import Ttrpc, open_ttrpc
from berth_plugin_proto import (
    group_pb2_grpc,
    identity_pb2,
    identity_pb2_grpc,
    placement_pb2_grpc,
    queueing_pb2_grpc,
    scheduling_pb2_grpc,
    state_pb2,
)

POINTS = {
    name.removeprefix("EXTENSION_POINT_"): number
    for name, number in identity_pb2.ExtensionPoint.items()
    if number
}


class PluginUnreachableError(Exception):
    """No plugin answers at the address."""


class InUseError(Exception):
    """A scheduler uses the plugin, as far as can be seen from outside."""


class VerifyOptions(msgspec.Struct, frozen=True):
    """Where the plugin is and how to treat it.

    `nodes` and `pods` are documents that give it something to decide, `objects` those of the kinds that it
    watches; `in_use` goes on with a plugin that a scheduler seems to use. `stop` makes the process end, and
    `trace_file` is where the plugin writes its spans, one JSON object a line, as the SDKs' BERTH_TRACE_FILE.
    `span_seconds` is longer than five: OpenTelemetry's SDKs write a batch of spans that often by default.
    """

    address: str
    tls: PluginTls | None = None
    arguments: Any = None
    profile: str = "default-scheduler"
    nodes: tuple[Document, ...] = ()
    pods: tuple[Document, ...] = ()
    objects: tuple[Document, ...] = ()
    in_use: bool = False
    node_count: int = 6
    many_nodes: int = 5000
    seconds: float = 5.0
    span_seconds: float = 15.0
    seed: int = 0
    trace_file: Path | None = None
    stop: Callable[[], Awaitable[None]] | None = None


@dataclass
class PluginUnderTest:
    """A plugin that is there, and what it said of itself."""

    options: VerifyOptions
    channel: grpc.aio.Channel
    introduction: identity_pb2.HandshakeResponse = field(default_factory=identity_pb2.HandshakeResponse)
    open: AsyncExitStack = field(default_factory=AsyncExitStack)
    """What a check opened, closed at its end."""
    tried: TriedAnswers = field(default_factory=TriedAnswers)

    def __post_init__(self) -> None:
        self.identity: Any = identity_pb2_grpc.IdentityServiceStub(self.channel)
        self.scheduling: Any = scheduling_pb2_grpc.SchedulingServiceStub(self.channel)
        self.groups: Any = group_pb2_grpc.GroupServiceStub(self.channel)
        self.placement: Any = placement_pb2_grpc.PlacementServiceStub(self.channel)
        self.queueing: Any = queueing_pb2_grpc.QueueingServiceStub(self.channel)

    @property
    def capabilities(self) -> identity_pb2.Capabilities:
        """What the plugin announced."""
        return self.introduction.capabilities

    @property
    def announced(self) -> Announced:
        """What samples are made of."""
        return announced(self.capabilities, self.options.arguments)

    @property
    def pods(self) -> list[Document]:
        """Pods to ask about."""
        return make_pods(self.announced, self.options.profile, self.options.pods)

    def nodes(self, count: int | None = None) -> list[Document]:
        """Nodes to show."""
        wanted = self.options.node_count if count is None else count
        return make_nodes(wanted, self.announced, self.options.nodes)

    def objects(self) -> list[state_pb2.Change]:
        """Show the user's objects of the kinds that the plugin watches."""
        found = []
        for document in self.options.objects:
            if (kind := watched_kind(document, self.capabilities.state.resources)) is not None:
                self.tried.kinds.add(kind.resource)
                found.append(_object(document, kind))
        return found

    def offers(self, capability: str) -> bool:
        """Whether the plugin announced an extension point, or something else by its field's name."""
        if capability in POINTS:
            return POINTS[capability] in self.capabilities.extension_points
        if capability in ("nodes", "pods", "nominations"):
            return bool(getattr(self.capabilities.state, capability))
        present = getattr(self.capabilities, capability)
        if capability in ("pod_fields", "arguments_schema"):
            return self.capabilities.HasField(capability)  # type: ignore[arg-type] # a name from a check
        return bool(present)

    async def shake_hands(self, versions: tuple[int, ...] = (1,)) -> identity_pb2.HandshakeResponse:
        """What the plugin says of itself."""
        request = identity_pb2.HandshakeRequest(
            host_name="berth plugin verify", host_version="1", supported_versions=versions
        )
        answer: identity_pb2.HandshakeResponse = readable(
            await self.identity.Handshake(request, timeout=self.options.seconds)
        )
        return answer

    async def configure(self, profile: str | None = None, **changes: Any) -> list[str]:
        """The errors that the plugin finds."""
        fields: dict[str, Any] = {"protocol_version": 1, "profile": profile or self.options.profile}
        if self.options.arguments is not None:
            fields["arguments"] = msgspec.json.encode(self.options.arguments)
        request = identity_pb2.ConfigureRequest(**{**fields, **changes})
        response = readable(await self.identity.Configure(request, timeout=self.options.seconds))
        return list(response.errors)

    async def in_time(self, work: Awaitable[Any], what: str) -> Any:
        """What comes of it.

        Raises: UnmetError where nothing does.
        """
        try:
            async with asyncio.timeout(self.options.seconds):
                return await work
        except TimeoutError:
            raise UnmetError(f"{what} within {self.options.seconds:g} s", "nothing") from None

    async def another(self) -> "PluginUnderTest":
        """The same plugin over a connection of its own, until the check ends."""
        channel = await self.open.enter_async_context(channel_of(self.options))
        await self.in_time(channel.channel_ready(), "a second connection")
        return PluginUnderTest(self.options, channel, self.introduction, self.open, self.tried)

    def conversation(self) -> Conversation:
        """A Converse stream that is read until the check ends."""
        opened = Conversation(self.scheduling)
        reading = asyncio.create_task(opened.run())
        self.open.push_async_callback(_end, reading)
        return opened

    async def over_ttrpc(self) -> Ttrpc:
        """A connection to the ttrpc socket that was announced, until the check ends.

        Raises: UnmetError where it is not to be trusted, or not served.
        """
        spec = SidecarSpec("under test", self.options.address)
        opened = self.open.enter_async_context(open_ttrpc(spec, self.capabilities.ttrpc_socket))
        try:
            connection: Ttrpc = await self.in_time(opened, "a connection to the ttrpc socket")
        except NotConnectedError as error:
            raise UnmetError("a private socket beside the first, which is served", error) from None
        return connection


def watched_kind(
    document: Document, kinds: Iterable[identity_pb2.WatchedResource]
) -> identity_pb2.WatchedResource | None:
    """Which of the watched kinds that object is of; its plural is guessed from the kind's name."""
    group, _, version = document.get("apiVersion", "").rpartition("/")
    name = document.get("kind", "").lower()
    plurals = {f"{name}s", f"{name}es", f"{name.removesuffix('y')}ies"}
    return next(
        (
            each
            for each in kinds
            if (each.group, each.version) == (group, version) and each.resource in plurals
        ),
        None,
    )


def _object(document: Document, kind: identity_pb2.WatchedResource) -> state_pb2.Change:
    metadata = document["metadata"]
    key = state_pb2.ObjectKey(
        group=kind.group,
        version=kind.version,
        resource=kind.resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
    )
    upsert = state_pb2.ObjectUpsert(key=key, object=msgspec.json.encode(document))
    return state_pb2.Change(object_upsert=upsert)


async def _end(reading: "asyncio.Task[None]") -> None:
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


@asynccontextmanager
async def channel_of(options: VerifyOptions) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to the plugin, as the host opens it.

    Raises: UnreachableError where the address is not to be trusted, or no plugin answers.
    """
    spec = SidecarSpec("under test", options.address, tls=options.tls)
    async with AsyncExitStack() as open_until_the_end:
        try:
            channel = await open_until_the_end.enter_async_context(open_channel(spec))
        except NotConnectedError as error:
            raise PluginUnreachableError(str(error)) from error
        yield channel


def readable(answer: Any) -> Any:
    """Raises: UnmetError where gRPC could not read the message."""
    if answer is None:
        raise UnmetError("a message that can be read", "bytes that are none")
    return answer


async def refused(
    call: Awaitable[Any], code: grpc.StatusCode, reason: str = "", *, what: str = "the call"
) -> None:
    """Raises: UnmetError unless the call is refused with that code, and that berth-reason if one is named."""
    wanted = code.name + (f" with {REASON_KEY} {reason}" if reason else "")
    try:
        answer = await call
    except (grpc.aio.AioRpcError, RpcError) as error:
        came = RpcError.of(error)
        if came.code is not code or (reason and came.reason != reason):
            text = f"{came.code.name} {came.reason} ({came.text})"
            raise UnmetError(f"{what} refused with {wanted}", text) from None
        return
    raise UnmetError(f"{what} refused with {wanted}", f"the answer {brief(answer)}")


async def fails(call: Awaitable[Any], what: str) -> grpc.StatusCode:
    """The status of a call that has to fail, by the plugin's own word.

    Raises: UnmetError where it does not, or the plugin went away over it.
    """
    try:
        answer = await call
    except (grpc.aio.AioRpcError, RpcError) as error:
        code = RpcError.of(error).code
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise UnmetError(f"an error as the answer to {what}", code.name) from None
        return code
    raise UnmetError(f"an error as the answer to {what}", f"the answer {brief(answer)}")


def brief(message: Any) -> str:
    """A message in one short line."""
    text = " ".join(str(message).split())
    return (text[:200] + " ...") if len(text) > 200 else text or "an empty message"  # noqa: PLR2004 - a line


def skip(reason: str) -> UnsuitableError:
    """The exception that ends a check which does not apply."""
    return UnsuitableError(reason)
