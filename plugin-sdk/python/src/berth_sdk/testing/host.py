"""A host for tests: it speaks the scheduler's side of the protocol and checks what comes back."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import grpc
import msgspec
import numpy as np

from berth_plugin_proto import (
    common_pb2,
    group_pb2,
    group_pb2_grpc,
    identity_pb2,
    identity_pb2_grpc,
    placement_pb2,
    placement_pb2_grpc,
    queueing_pb2,
    queueing_pb2_grpc,
    scheduling_pb2,
    scheduling_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from berth_sdk.clock import MICROS
from berth_sdk.outcomes import ClusterEvent, Code, CycleOutcome, Reason, Status, Verdicts
from berth_sdk.packing import (
    pack_bits,
    pack_indices,
    pack_verdicts,
    unpack_bits,
    unpack_indices,
    unpack_scores,
    unpack_verdicts,
)
from berth_sdk.plugin import Plugin
from berth_sdk.serving import Server
from berth_sdk.testing.builders import Document
from berth_sdk.testing.cluster import Cluster
from berth_sdk.tracing import Tracing

TIMEOUT_SECONDS = 60.0
MAX_ALONE = 32


class Refused(AssertionError):  # noqa: N818 - it reads as what happened
    """The plugin answered with a status that is no success."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"{status.code.name}: {'; '.join(status.reasons)}")
        self.status = status


@dataclass(frozen=True)
class Rejections:
    """Filter's answer: the pod's status, and the reason of every node that was turned down, by name."""

    status: Status
    nodes: dict[str, Reason]

    def passing(self, names: Iterable[str]) -> list[str]:
        """Return those of the names that passed."""
        fits = self.status.code in {Code.SUCCESS, Code.SKIP}
        return [name for name in names if fits and name not in self.nodes]

    def about(self, name: str) -> tuple[Status, Reason | None]:
        """Return what is said of the pod, and why that node is turned down."""
        return self.status, self.nodes.get(name)


class Host:
    """One connection to a plugin, with a cluster of its own to show it.

    Every method sends the changes made to `cluster` before it asks. Filter and Score are asked about nodes
    together, and about each alone; `once` leaves the second out, for plugins that count their calls.
    """

    def __init__(self, address: str, *, profile: str = "default-scheduler", epoch: str | None = None) -> None:
        self.address = address
        self.cluster = Cluster()
        self.profile = profile
        self.epoch = epoch or uuid4().hex
        self.attempts: dict[str, int] = {}
        self.once = self.needs_feasible = False
        self.metadata: tuple[tuple[str, str], ...] = ()
        # gRPC would send a socket's path as authority, which servers on Rust's h2 refuse (hyperium/h2 487).
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
        self.channel = grpc.aio.insecure_channel(address, options=options)
        self.identity: identity_pb2_grpc.IdentityServiceAsyncStub = identity_pb2_grpc.IdentityServiceStub(
            self.channel
        )
        self.scheduling: scheduling_pb2_grpc.SchedulingServiceAsyncStub = (
            scheduling_pb2_grpc.SchedulingServiceStub(self.channel)
        )
        self.placement: placement_pb2_grpc.PlacementServiceAsyncStub = (
            placement_pb2_grpc.PlacementServiceStub(self.channel)
        )
        self.groups: group_pb2_grpc.GroupServiceAsyncStub = group_pb2_grpc.GroupServiceStub(self.channel)
        self.queueing: queueing_pb2_grpc.QueueingServiceAsyncStub = queueing_pb2_grpc.QueueingServiceStub(
            self.channel
        )
        self.state: state_pb2_grpc.StateServiceAsyncStub = state_pb2_grpc.StateServiceStub(self.channel)
        self._stream: Any = None

    async def connect(self, arguments: Mapping[str, Any] | None = None) -> identity_pb2.HandshakeResponse:
        """Shake hands, configure the profile and transfer the cluster.

        Raises: AssertionError: the plugin refuses the arguments.
        """
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await self.channel.channel_ready()
        answer = await self.handshake()
        errors = await self.configure(arguments)
        assert not errors, errors
        await self.sync()
        return answer

    async def close(self) -> None:
        """Hang up."""
        if self._stream is not None:
            self._stream.cancel()
        await self.channel.close()

    async def handshake(self) -> identity_pb2.HandshakeResponse:
        """Return the plugin's introduction."""
        request = identity_pb2.HandshakeRequest(
            host_name="berth-sdk-testing", host_version="1", supported_versions=[1]
        )
        introduced = await self.identity.Handshake(request, timeout=TIMEOUT_SECONDS)
        self.needs_feasible = introduced.capabilities.score_needs_feasible
        return introduced

    async def configure(
        self, arguments: Mapping[str, Any] | None = None, *, shadow: bool = False
    ) -> list[str]:
        """Configure the profile, or its shadow, and return the plugin's errors."""
        data = None if arguments is None else msgspec.json.encode(arguments)
        request = identity_pb2.ConfigureRequest(
            protocol_version=1, profile=self.profile, arguments=data, shadow=shadow
        )
        response = await self.identity.Configure(request, timeout=TIMEOUT_SECONDS)
        return list(response.errors)

    # -- state ----------------------------------------------------------------------------------------------

    async def open(self) -> state_pb2.Held:
        """Open the Sync stream and return what the plugin says it holds."""
        self._stream = self.state.Sync()
        return (await self._read()).held

    async def sync(self) -> None:
        """Open the stream and transfer everything."""
        await self.open()
        for message in self.cluster.transfer(self.epoch):
            await self._stream.write(message)
        await self._acknowledged()

    async def resume(self) -> None:
        """Open the stream and go on from what the plugin holds, or transfer everything."""
        held = await self.open()
        if (held.epoch, held.generation) != (self.epoch, self.cluster.generation):
            for message in self.cluster.transfer(self.epoch):
                await self._stream.write(message)
        else:
            begin = state_pb2.Begin(epoch=self.epoch, resume_generation=held.generation)
            await self._stream.write(state_pb2.SyncRequest(begin=begin))
        await self._acknowledged()

    async def send(self, message: state_pb2.SyncRequest) -> state_pb2.SyncResponse:
        """Send one message and return the answer to it."""
        await self._stream.write(message)
        return await self._read()

    async def update(self) -> None:
        """Send what changed in the cluster, if anything did."""
        if self.cluster.pending:
            await self._stream.write(state_pb2.SyncRequest(delta=self.cluster.step()))
            await self._acknowledged()

    async def set_time(self, seconds: float) -> float | None:
        """Let the plugin's clock stand at that time since the epoch; when its next timer is due, if one is.

        What is due by then runs first, each timer at its time.
        """
        asked = state_pb2.Time(unix_micros=round(seconds * MICROS))
        reached = (await self.send(state_pb2.SyncRequest(time=asked))).time_reached
        assert reached.unix_micros == asked.unix_micros, reached
        return reached.wake_at_unix_micros / MICROS if reached.HasField("wake_at_unix_micros") else None

    async def _read(self) -> state_pb2.SyncResponse:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            response: state_pb2.SyncResponse = await self._stream.read()
        return response

    async def _acknowledged(self) -> None:
        response = await self._read()
        assert response.ack.generation == self.cluster.generation, response

    # -- questions ------------------------------------------------------------------------------------------

    def call(self, pod: Document, *, attempt: int | None = None) -> common_pb2.Call:
        """Return the head of a request about this pod, at the present generation."""
        metadata = pod["metadata"]
        uid = metadata["uid"]
        ref = common_pb2.PodRef(
            uid=uid,
            namespace=metadata["namespace"],
            name=metadata["name"],
            attempt=attempt or self.attempts.setdefault(uid, 1),
            object=msgspec.json.encode(pod),
        )
        return common_pb2.Call(
            epoch=self.epoch, generation=self.cluster.generation, profile=self.profile, pod=ref
        )

    async def filter(
        self, pod: Document, candidates: Iterable[str] | None = None, *, listed: bool = False
    ) -> Rejections:
        """Return which nodes are turned down, and why; `listed` candidates are asked about by index.

        Raises: Refused: the plugin failed; AssertionError: a node has another verdict when it is asked about
            alone, as the scheduler asks once the node has changed.
        """
        await self.update()
        names = self.cluster.names if candidates is None else list(candidates)
        together = await self._filter(pod, None if candidates is None else names, listed=listed)
        for name in self._alone(names):
            alone = await self._filter(pod, [name], listed=listed)
            _same(name, together.about(name), alone.about(name))
        return together

    async def _filter(self, pod: Document, candidates: list[str] | None, *, listed: bool) -> Rejections:
        asked = self._candidates(candidates, listed=listed)
        request = scheduling_pb2.FilterRequest(call=self.call(pod), candidates=asked)
        response = await self.scheduling.Filter(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        return self._rejections(response, self._entries(asked))

    async def filter_status(self, pod: Document) -> Status:
        """Return what Filter says of the pod, a failure too."""
        await self.update()
        request = scheduling_pb2.FilterRequest(call=self.call(pod))
        response = await self.scheduling.Filter(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        return _status(response.status)

    async def score(
        self, pod: Document, candidates: Iterable[str] | None = None, *, listed: bool = False
    ) -> dict[str, int] | None:
        """Return the raw score of each node asked about, None if the plugin has no opinion.

        Raises: Refused, AssertionError: as `filter`; a plugin with `score_needs_feasible` is asked about no
            node alone.
        """
        await self.update()
        only = None if candidates is None else set(candidates)
        together = await self._score(pod, only, listed=listed)
        for name in [] if self.needs_feasible else self._alone(list(together or ())):
            alone = await self._score(pod, {name}, listed=listed)
            _same(name, (together or {}).get(name), (alone or {}).get(name))
        return together

    async def _score(self, pod: Document, only: set[str] | None, *, listed: bool) -> dict[str, int] | None:
        asked = self._candidates(only, listed=listed)
        request = scheduling_pb2.ScoreRequest(call=self.call(pod), candidates=asked)
        response = await self.scheduling.Score(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        return self._scores(response, self._entries(asked), only)

    async def filter_score(
        self, pod: Document, candidates: Iterable[str] | None = None, *, listed: bool = False
    ) -> tuple[Rejections, dict[str, int] | None]:
        """Return both in one round trip; scores are those of the nodes asked about that pass.

        Raises: Refused, AssertionError: as `filter`.
        """
        await self.update()
        names = self.cluster.names if candidates is None else list(candidates)
        together, scores = await self._both(pod, None if candidates is None else names, listed=listed)
        for name in self._alone(names):
            alone, points = await self._both(pod, [name], listed=listed)
            _same(name, together.about(name), alone.about(name))
            _same(name, (scores or {}).get(name), (points or {}).get(name))
        return together, scores

    async def _both(
        self, pod: Document, candidates: list[str] | None, *, listed: bool
    ) -> tuple[Rejections, dict[str, int] | None]:
        wanted = self.cluster.names if candidates is None else list(candidates)
        asked = self._candidates(None if candidates is None else wanted, listed=listed)
        request = scheduling_pb2.FilterScoreRequest(call=self.call(pod), candidates=asked)
        response = await self.scheduling.FilterScore(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        entries = self._entries(asked)
        rejections = self._rejections(response.filter, entries)
        if not response.HasField("score"):
            return rejections, None
        return rejections, self._scores(response.score, entries, set(rejections.passing(wanted)))

    async def pre_enqueue(self, pod: Document) -> Status:
        """Return whether the pod may enter the queue."""
        request = scheduling_pb2.PreEnqueueRequest(call=self.call(pod))
        response = await self.scheduling.PreEnqueue(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        return _status(response.status)

    async def post_filter(
        self, pod: Document, rejections: Mapping[str, Reason]
    ) -> scheduling_pb2.PostFilterResponse:
        """Return what the plugin makes of a pod that these nodes were the reason for not placing."""
        await self.update()
        verdicts = self._verdicts(rejections)
        request = scheduling_pb2.PostFilterRequest(call=self.call(pod), verdicts=verdicts)
        return await self.scheduling.PostFilter(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)

    def _verdicts(self, rejections: Mapping[str, Reason]) -> scheduling_pb2.Verdicts:
        table = tuple(dict.fromkeys(rejections.values()))
        codes = [
            table.index(rejections[name]) + 1 if name in rejections else 0 for name in self.cluster.names
        ]
        return pack_verdicts(Verdicts(np.array(codes, np.uint8), table), None)

    async def filter_overlays(
        self, pod: Document, *overlays: tuple[str, Iterable[Document], Iterable[Document]]
    ) -> list[Reason | None]:
        """Return, for each (node, pods to remove, pods to add), why the simulated node is turned down.

        Raises: Refused: the plugin turns the pod down as a whole.
        """
        await self.update()
        asked = [self._overlay(*overlay) for overlay in overlays]
        request = scheduling_pb2.FilterOverlaysRequest(call=self.call(pod), overlays=asked)
        response = await self.scheduling.FilterOverlays(
            request, timeout=TIMEOUT_SECONDS, metadata=self.metadata
        )
        _succeeded(response.status)
        table = tuple(Reason(each.text, Code(each.code)) for each in response.verdicts.reasons)
        codes = unpack_verdicts(response.verdicts, table, len(asked)).codes.tolist()
        return [table[code - 1] if code else None for code in codes]

    def _overlay(
        self, node_name: str, removed: Iterable[Document], added: Iterable[Document]
    ) -> scheduling_pb2.Overlay:
        return scheduling_pb2.Overlay(
            node_index=self.cluster.names.index(node_name),
            removed_pod_uids=[pod["metadata"]["uid"] for pod in removed],
            added_pods=[
                state_pb2.PodUpsert(
                    uid=pod["metadata"]["uid"],
                    node_name=node_name,
                    stage=state_pb2.POD_STAGE_NOMINATED,
                    object=msgspec.json.encode(pod),
                )
                for pod in added
            ],
        )

    async def bind(
        self, pod: Document, node_name: str, annotations: Mapping[str, str] | None = None
    ) -> Status:
        """Return whether the plugin wrote the binding."""
        await self.update()
        request = scheduling_pb2.BindRequest(
            call=self.call(pod), node_name=node_name, annotations=annotations
        )
        response = await self.scheduling.Bind(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        return _status(response.status)

    async def reserve(self, pod: Document, node_name: str) -> None:
        """Reserve, as the pod's present attempt.

        Raises: Refused: the plugin says no.
        """
        await self.update()
        request = scheduling_pb2.ReserveRequest(call=self.call(pod), node_name=node_name)
        response = await self.scheduling.Reserve(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        _succeeded(response.status)

    async def unreserve(self, pod: Document, node_name: str) -> None:
        """Take the attempt back; the next one has a new number."""
        request = scheduling_pb2.UnreserveRequest(call=self.call(pod), node_name=node_name)
        await self.scheduling.Unreserve(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        self.attempts[pod["metadata"]["uid"]] += 1

    async def pre_bind(self, pod: Document, node_name: str) -> Document:
        """Return the metadata that the plugin wants merged into the pod, empty if nothing.

        Raises: Refused: the plugin says no.
        """
        await self.update()
        request = scheduling_pb2.PreBindRequest(call=self.call(pod), node_name=node_name)
        response = await self.scheduling.PreBind(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        _succeeded(response.status)
        patch: Document = msgspec.json.decode(response.metadata_patch or b"{}")
        return patch

    async def permit(self, pod: Document, node_name: str) -> scheduling_pb2.PermitResponse:
        """Return the plugin's answer."""
        await self.update()
        request = scheduling_pb2.PermitRequest(call=self.call(pod), node_name=node_name)
        return await self.scheduling.Permit(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)

    async def cycle_done(self, pod: Document, outcome: CycleOutcome, node_name: str | None = None) -> None:
        """Tell how the attempt ended."""
        request = scheduling_pb2.CycleDoneRequest(
            call=self.call(pod), outcome=outcome.value, node_name=node_name
        )
        await self.scheduling.CycleDone(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)

    async def hints(self, pods: Iterable[Document], *events: ClusterEvent) -> list[list[bool]]:
        """Return, for each event, whether each pod is worth another attempt."""
        refs = [self.call(pod).pod for pod in pods]
        rows = [
            queueing_pb2.ClusterEvent(
                resource=each.resource, action=each.action.value, old_object=each.old, new_object=each.new
            )
            for each in events
        ]
        request = queueing_pb2.QueueingHintsRequest(profile=self.profile, events=rows, pods=refs)
        response = await self.queueing.QueueingHints(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        return [_hint(hint, len(refs)) for hint in response.hints]

    async def sort_keys(
        self, *pods: Document, left: Iterable[str] = (), anew: bool = False
    ) -> list[tuple[int, ...]]:
        """Return where these pods stand in the queue; `left` are UIDs of pods that wait no more."""
        await self.update()
        refs = [self.call(pod).pod for pod in pods]
        request = queueing_pb2.SortKeysRequest(profile=self.profile, pods=refs, left_uids=left, anew=anew)
        response = await self.queueing.SortKeys(request, timeout=TIMEOUT_SECONDS, metadata=self.metadata)
        assert len(response.keys) == len(refs), response
        return [tuple(key.parts) for key in response.keys]

    async def changed_sort_keys(self) -> AsyncIterator[dict[str, tuple[int, ...]]]:
        """Yield keys by UID, each time that the plugin gives pods other ones by itself."""
        async for message in self.queueing.Requeue(queueing_pb2.RequeueRequest()):
            if message.WhichOneof("action") == "sort_keys":
                keys = (tuple(key.parts) for key in message.sort_keys.keys)
                yield dict(zip(message.sort_keys.uids, keys, strict=True))

    async def generate_placements(
        self, group: str, *pods: Document, candidates: Iterable[str] | None = None
    ) -> dict[str, list[str]] | None:
        """Return the names of the nodes in each placement of the group, None if the plugin has no opinion.

        Raises: Refused: the group can go nowhere.
        """
        await self.update()
        request = placement_pb2.GeneratePlacementsRequest(
            call=self.call(pods[0]), group=self._group(group, pods), candidates=self._candidates(candidates)
        )
        response = await self.placement.GeneratePlacements(
            request, timeout=TIMEOUT_SECONDS, metadata=self.metadata
        )
        if _status(response.status).code is Code.SKIP:
            return None
        _succeeded(response.status)
        names = np.array(self.cluster.names)
        return {
            each.name: names[unpack_bits(each.bitmap, len(names))].tolist() for each in response.placements
        }

    async def score_placements(
        self, group: str, pods: Sequence[Document], *proposed: Mapping[str, str]
    ) -> list[int] | None:
        """Return the raw score of each proposal, which is node names by pod names, None for no opinion.

        A proposal's placement are the nodes that it uses.
        """
        await self.update()
        request = placement_pb2.ScorePlacementsRequest(
            call=self.call(pods[0]),
            group=self._group(group, pods),
            proposed=[self._proposal(number, pods, nodes) for number, nodes in enumerate(proposed)],
        )
        response = await self.placement.ScorePlacements(
            request, timeout=TIMEOUT_SECONDS, metadata=self.metadata
        )
        if _status(response.status).code is Code.SKIP:
            return None
        _succeeded(response.status)
        scores: list[int] = unpack_scores(response.scores, len(proposed)).tolist()
        return scores

    async def placement_feasible(
        self, group: str, pods: Sequence[Document], *progress: tuple[int, int]
    ) -> list[Status]:
        """Return what the plugin says of the group at each (remaining, scheduled)."""
        numbers = [group_pb2.PlacementProgress(remaining=r, scheduled=s) for r, s in progress]
        request = group_pb2.PlacementFeasibleRequest(
            call=self.call(pods[0]), group=self._group(group, pods), progress=numbers
        )
        response = await self.groups.PlacementFeasible(
            request, timeout=TIMEOUT_SECONDS, metadata=self.metadata
        )
        return [_status(each) for each in response.verdicts]

    async def pod_group_post_filter(
        self, group: str, *pods: Document, rejections: Mapping[str, Reason] = MappingProxyType({})
    ) -> list[list[str]]:
        """Return the UIDs of the victims of each proposal for the group of these pods.

        `rejections` are those of the first pod that found no node.

        Raises: Refused: the plugin has none.
        """
        await self.update()
        request = group_pb2.PodGroupPostFilterRequest(
            call=self.call(pods[0]), group=self._group(group, pods), verdicts=self._verdicts(rejections)
        )
        response = await self.groups.PodGroupPostFilter(
            request, timeout=TIMEOUT_SECONDS, metadata=self.metadata
        )
        _succeeded(response.status)
        return [list(each.victim_uids) for each in response.proposals]

    def _group(self, name: str, pods: Sequence[Document]) -> placement_pb2.PodGroup:
        refs = [self.call(pod).pod for pod in pods]
        for ref in refs:
            ref.ClearField("object")
        return placement_pb2.PodGroup(namespace=pods[0]["metadata"]["namespace"], name=name, pods=refs)

    def _proposal(
        self, number: int, pods: Sequence[Document], nodes: Mapping[str, str]
    ) -> placement_pb2.ProposedPlacement:
        mask = np.array([name in nodes.values() for name in self.cluster.names], np.bool_)
        index = {pod["metadata"]["name"]: i for i, pod in enumerate(pods)}
        return placement_pb2.ProposedPlacement(
            placement=placement_pb2.Placement(name=f"proposal-{number}", bitmap=pack_bits(mask)),
            pod_indices=[index[name] for name in nodes],
            node_indices=[self.cluster.names.index(node) for node in nodes.values()],
        )

    async def place(self, pod: Document, node_name: str) -> Document:
        """Reserve, bind and confirm the pod on a node; return it as it is afterwards."""
        await self.reserve(pod, node_name)
        patch = await self.pre_bind(pod, node_name)
        merged = {**pod, "metadata": {**pod["metadata"]}, "spec": {**pod["spec"], "nodeName": node_name}}
        for part in ("annotations", "labels"):
            merged["metadata"][part] = {**pod["metadata"].get(part, {}), **patch.get(part, {})}
        self.cluster.put_pod(merged, node_name)
        await self.update()
        return merged

    def _candidates(
        self, names: Iterable[str] | None, *, listed: bool = False
    ) -> scheduling_pb2.Candidates | None:
        if names is None and not listed:
            return None
        wanted = set(self.cluster.names if names is None else names)
        mask = np.array([name in wanted for name in self.cluster.names], np.bool_)
        if listed:
            return scheduling_pb2.Candidates(indices=pack_indices(np.flatnonzero(mask)))
        return scheduling_pb2.Candidates(bitmap=pack_bits(mask))

    def _entries(self, candidates: scheduling_pb2.Candidates | None) -> list[str]:
        """Return the names of the nodes that the entries of the answer are about."""
        names = self.cluster.names
        if candidates is None or not candidates.HasField("indices"):
            return names
        return [names[i] for i in unpack_indices(candidates.indices, len(names))]

    def _rejections(self, response: scheduling_pb2.FilterResponse, entries: list[str]) -> Rejections:
        assert response.generation == self.cluster.generation, response.generation
        status = _status(response.status)
        if status.code is Code.ERROR:
            raise Refused(status)
        assert response.HasField("verdicts") == (status.code is Code.SUCCESS), response
        if status.code is not Code.SUCCESS:
            return Rejections(status, {})
        table = tuple(Reason(each.text, Code(each.code)) for each in response.verdicts.reasons)
        codes = unpack_verdicts(response.verdicts, table, len(entries)).codes
        rejected = {name: table[code - 1] for name, code in zip(entries, codes, strict=True) if code}
        return Rejections(status, rejected)

    def _alone(self, names: list[str]) -> list[str]:
        """Return the nodes that are asked about one by one, of all that were asked about."""
        return [] if self.once else names[:MAX_ALONE]

    def _scores(
        self, response: scheduling_pb2.ScoreResponse, entries: list[str], only: set[str] | None
    ) -> dict[str, int] | None:
        if _status(response.status).code is Code.SKIP:
            return None
        _succeeded(response.status)
        scores = unpack_scores(response.scores, len(entries)).tolist()
        pairs = zip(entries, scores, strict=True)
        return {name: score for name, score in pairs if only is None or name in only}


def _same(name: str, together: object, alone: object) -> None:
    """Raises: AssertionError unless the answers about a node are equal."""
    if together != alone:
        raise AssertionError(f"{name} asked about alone: {alone}, and together with the others: {together}")


@asynccontextmanager
async def running(
    plugin: Plugin,
    *nodes: Document,
    profile: str = "default-scheduler",
    arguments: Mapping[str, Any] | None = None,
    tracing: Tracing | None = None,
) -> AsyncIterator[Host]:
    """Serve the plugin in this process, on a socket of its own, and yield a host that shows it the nodes."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        address = f"unix:{Path(folder, 'plugin.sock')}"
        server = Server(plugin, address, tracing=tracing)
        await server.start()
        host = Host(address, profile=profile)
        for node in nodes:
            host.cluster.put_node(node)
        try:
            await host.connect(arguments)
            yield host
        finally:
            await host.close()
            await server.stop(grace_seconds=0)


def _status(message: common_pb2.Status) -> Status:
    return Status(Code(message.code), tuple(message.reasons))


def _succeeded(message: common_pb2.Status) -> None:
    status = _status(message)
    if status.code is not Code.SUCCESS:
        raise Refused(status)


def _hint(hint: queueing_pb2.Hint, count: int) -> list[bool]:
    if hint.WhichOneof("queue") == "all":
        return [hint.all] * count
    bits: list[bool] = unpack_bits(hint.pods, count).tolist()
    return bits
