"""A host's side of one epoch: the state that it shows the plugin, and calls about it."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import grpc.aio
import msgspec
import numpy as np

from berth.conformance.check import expect
from berth.conformance.errors import UnmetError
from berth.conformance.samples import Document
from berth.conformance.subject import PluginUnderTest, brief, readable
from berth.out_of_tree.packing import bitmap
from berth.out_of_tree.transport.rpc import MESSAGES, SERVICE_OF
from berth_plugin_proto import common_pb2, scheduling_pb2, state_pb2, state_pb2_grpc

CHUNK_CHANGES = 500
PLACED, ASSUMED = state_pb2.POD_STAGE_PLACED, state_pb2.POD_STAGE_ASSUMED
NOMINATED = state_pb2.POD_STAGE_NOMINATED


class Stream:
    """One Sync stream."""

    def __init__(self, subject: PluginUnderTest) -> None:
        self._subject = subject
        self._rpc: Any = None
        self.held = state_pb2.Held()

    async def opened(self) -> "Stream":
        """Open it, and read what the plugin holds, which it says by itself."""
        stub: Any = state_pb2_grpc.StateServiceStub(self._subject.channel)
        self._rpc = stub.Sync()
        self._subject.open.callback(self._rpc.cancel)
        first = await self.read("Held as the first message of a stream")
        expect(first.WhichOneof("body") == "held", "Held as the first message of a stream", brief(first))
        self.held = first.held
        return self

    async def write(self, **body: Any) -> None:
        """Send one message."""
        await self._rpc.write(state_pb2.SyncRequest(**body))

    async def read(self, what: str = "an answer on the stream") -> state_pb2.SyncResponse:
        """The next message.

        Raises: UnmetError where none comes.
        """
        message = await self._subject.in_time(self._rpc.read(), what)
        if message is grpc.aio.EOF:
            raise UnmetError(what, "the end of the stream")
        answer: state_pb2.SyncResponse = readable(message)
        return answer

    async def acked(self, generation: int) -> None:
        """Raises: UnmetError unless the next message is an Ack of that generation."""
        wanted = f"Ack of generation {generation}"
        answer = await self.read(wanted)
        expect(
            answer.WhichOneof("body") == "ack" and answer.ack.generation == generation, wanted, brief(answer)
        )

    async def nacked(self, reason: int) -> None:
        """Raises: UnmetError unless the next message is a Nack for that reason."""
        wanted = f"Nack with {state_pb2.NackReason.Name(reason)}"  # type: ignore[arg-type] # one of its values
        answer = await self.read(wanted)
        expect(answer.WhichOneof("body") == "nack" and answer.nack.reason == reason, wanted, brief(answer))

    async def ended(self) -> bool:
        """Whether the plugin ends the stream."""
        try:
            async with asyncio.timeout(self._subject.options.seconds):
                while await self._rpc.read() is not grpc.aio.EOF:
                    pass
        except grpc.aio.AioRpcError:
            return True
        except TimeoutError:
            return False
        return True


class HostState:
    """Nodes and pods of one epoch, generation by generation."""

    def __init__(self, subject: PluginUnderTest, nodes: Sequence[Document], epoch: str = "") -> None:
        self.subject = subject
        self.interest = subject.capabilities.state
        self.epoch = epoch or uuid4().hex
        self.generation = 1
        self.nodes = list(nodes) if self.interest.nodes else []
        self.placed: dict[str, state_pb2.PodUpsert] = {}
        self.attempts: dict[str, int] = {}
        self.stream = Stream(subject)

    async def shown(self) -> "HostState":
        """Open the stream, configure the profile, show everything."""
        await configured(self.subject)
        await self.stream.opened()
        await self.transfer()
        return self

    # -- state -----------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Begin a full transfer and send its chunks, not the commit."""
        await self.stream.write(begin=state_pb2.Begin(epoch=self.epoch))
        changes = self.everything()
        for start in range(0, len(changes), CHUNK_CHANGES):
            await self.stream.write(chunk=state_pb2.Chunk(changes=changes[start : start + CHUNK_CHANGES]))

    async def transfer(self) -> None:
        """Send everything; wait for the Ack."""
        await self.begin()
        await self.stream.write(commit=self.commit())
        await self.stream.acked(self.generation)

    def commit(self) -> state_pb2.Commit:
        """What ends a transfer."""
        return state_pb2.Commit(generation=self.generation, node_count=len(self.nodes))

    def everything(self) -> list[state_pb2.Change]:
        """The whole state."""
        rows = [_upsert(index, node) for index, node in enumerate(self.nodes)]
        pods = (state_pb2.Change(pod_upsert=each) for each in self.placed.values())
        return [*rows, *pods, *self.subject.objects()]

    def put_node(self, node: Document) -> state_pb2.Change | None:
        """A node comes or changes."""
        if not self.interest.nodes:
            return None
        name = node["metadata"]["name"]
        index = self.names.index(name) if name in self.names else len(self.nodes)
        self.nodes[index : index + 1] = [node]
        return _upsert(index, node)

    def drop_node(self, index: int) -> state_pb2.Change | None:
        """A node goes; the last row moves into its place."""
        if not self.interest.nodes:
            return None
        name, last = self.names[index], self.nodes.pop()
        if index < len(self.nodes):
            self.nodes[index] = last
        return state_pb2.Change(node_remove=state_pb2.NodeRemove(index=index, name=name))

    def put_pod(
        self, pod: Document, node_name: str, stage: Any = PLACED, attempt: int = 0
    ) -> state_pb2.Change | None:
        """A pod counts on a node."""
        upsert = pod_upsert(pod, node_name, stage, attempt)
        wanted = self.interest.nominations if stage == NOMINATED else self.interest.pods
        if not wanted or not _requests(pod, self.interest.pod_resources):
            return None
        self.placed[upsert.uid] = upsert
        return state_pb2.Change(pod_upsert=upsert)

    def drop_pod(self, uid: str) -> state_pb2.Change | None:
        """A pod counts nowhere any more."""
        if self.placed.pop(uid, None) is None:
            return None
        return state_pb2.Change(pod_remove=state_pb2.PodRemove(uid=uid))

    def delta(self, *changes: state_pb2.Change | None) -> state_pb2.Delta:
        """The next step, not sent."""
        self.generation += 1
        return state_pb2.Delta(
            base_generation=self.generation - 1,
            generation=self.generation,
            changes=[change for change in changes if change is not None],
            node_count=len(self.nodes),
        )

    async def step(self, *changes: state_pb2.Change | None) -> state_pb2.Delta:
        """Send the next step; wait for the Ack."""
        delta = self.delta(*changes)
        await self.stream.write(delta=delta)
        await self.stream.acked(delta.generation)
        return delta

    @property
    def names(self) -> list[str]:
        """Node names by index."""
        return [node["metadata"]["name"] for node in self.nodes]

    # -- calls -----------------------------------------------------------------------------------------------

    def call(self, pod: Document, **changes: Any) -> common_pb2.Call:
        """The head of a call about the pod."""
        ref = {
            "uid": pod["metadata"]["uid"],
            "namespace": pod["metadata"]["namespace"],
            "name": pod["metadata"]["name"],
            "attempt": changes.pop("attempt", 1),
            "object": msgspec.json.encode(pod) if changes.pop("with_object", True) else None,
        }
        head = {"epoch": self.epoch, "generation": self.generation, "profile": self.subject.options.profile}
        return common_pb2.Call(pod=common_pb2.PodRef(**ref), **{**head, **changes})

    async def ask(
        self, name: str, pod: Document, *, stub: Any = None, metadata: Any = (), **fields: Any
    ) -> Any:
        """The answer to a call about a pod or its group; `of_call` are other values for its head."""
        request = self.request(name, pod, **fields)
        seconds = self.subject.options.seconds
        services = {"PlacementService": self.subject.placement, "GroupService": self.subject.groups}
        plain = services.get(SERVICE_OF[name], self.subject.scheduling)
        answer = readable(await getattr(stub or plain, name)(request, timeout=seconds, metadata=metadata))
        self.subject.tried.answered(name, answer)
        return answer

    def request(self, name: str, pod: Document, **fields: Any) -> Any:
        """A request of that call."""
        head = self.call(pod, **fields.pop("of_call", {}))
        return getattr(MESSAGES[SERVICE_OF[name]], f"{name}Request")(call=head, **fields)

    def candidates(self, rows: Iterable[int]) -> scheduling_pb2.Candidates:
        """Those rows."""
        chosen = np.array(list(rows), dtype=np.intp)
        return scheduling_pb2.Candidates(bitmap=bitmap(chosen, len(self.nodes)))


async def configured(subject: PluginUnderTest) -> None:
    """Configure the profile.

    Raises: UnmetError where the plugin refuses the arguments.
    """
    errors = await subject.configure()
    expect(not errors, "the arguments to be accepted (give others with --args)", errors)


async def shown(subject: PluginUnderTest, nodes: int | None = None) -> HostState:
    """A plugin that holds a small cluster."""
    return await HostState(subject, subject.nodes(nodes)).shown()


def pod_upsert(pod: Document, node_name: str, stage: Any = PLACED, attempt: int = 0) -> state_pb2.PodUpsert:
    """That pod, counted on that node."""
    spec = {**pod["spec"], "nodeName": node_name} if stage == PLACED else pod["spec"]
    return state_pb2.PodUpsert(
        uid=pod["metadata"]["uid"],
        node_name=node_name,
        stage=stage,
        object=msgspec.json.encode({**pod, "spec": spec}),
        attempt=attempt,
    )


def _upsert(index: int, node: Document) -> state_pb2.Change:
    name = node["metadata"]["name"]
    return state_pb2.Change(
        node_upsert=state_pb2.NodeUpsert(index=index, name=name, object=msgspec.json.encode(node))
    )


def _requests(pod: Document, resources: Sequence[str]) -> bool:
    """Whether the pod requests one of these, or none is named."""
    requested: set[str] = set()
    for container in pod["spec"]["containers"]:
        with suppress(KeyError):
            requested |= set(container["resources"]["requests"])
    return not resources or bool(requested & set(resources))
