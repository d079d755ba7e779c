"""What one plugin process knows: its mirror, its profiles, and the pods it was asked about."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

import msgspec

from berth_plugin_proto import common_pb2, scheduling_pb2, state_pb2
from berth_sdk.errors import CallError, Cause, SyncError
from berth_sdk.metrics import Held, Meter
from berth_sdk.nodes import Nodes
from berth_sdk.objects import Node, Pod
from berth_sdk.outcomes import PodKey
from berth_sdk.packing import unpack_bits, unpack_indices
from berth_sdk.plugin import Plugin, awaits
from berth_sdk.state import Mirror, pod_view
from berth_sdk.waiting import in_task

_NO_POD: tuple[int, Pod | None] = (0, None)


@dataclass
class Session:
    """The state behind all services of one plugin; used by one event loop."""

    plugin: Plugin
    remembered_pods: int = 10_000
    profiles: set[str] = field(default_factory=set)
    stream: object = None
    """The Sync stream that counts, the one opened last."""
    traced: bool = False
    """Whether calls have spans."""
    ttrpc_socket: str | None = None
    """The file name of the second socket, where one is served."""
    pods: OrderedDict[str, tuple[int, Pod]] = field(default_factory=OrderedDict)
    """The pods last asked about, with their attempts, most recent last."""

    def __post_init__(self) -> None:
        self.mirror = Mirror(self.plugin, self.remembered)
        self.meter = Meter(self.plugin.name, self.plugin.version)
        self._keeps_nodes = awaits(
            self.plugin,
            "filter_nodes",
            "score_nodes",
            "generate_placements",
            "score_placements",
            "pod_group_post_filter",
        )
        self.turned = asyncio.Event()
        """Set when `ready` has become another."""
        self._waiting: set[asyncio.Future[None]] = set()
        """Calls that wait for the state to move."""
        self._was_ready = False

    @property
    def ready(self) -> bool:
        """Return whether calls can be answered: configured and synced."""
        return bool(self.profiles and self.mirror.generation)

    def metrics(self) -> str:
        """Return what is counted, in Prometheus' text format."""
        mirror = self.mirror
        held = Held(mirror.generation, len(mirror.nodes), len(mirror.pods), len(mirror.objects))
        return self.meter.text(held, self.plugin.metrics())

    def announce(self) -> None:
        """Wake the calls that wait for a generation, and the watchers of `ready` if that changed."""
        if self.ready is not self._was_ready:
            self._was_ready = self.ready
            self.turned.set()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def catch_up(self, call: common_pb2.Call) -> None:
        """Hold the generation that the call is about, by its own deltas or by waiting for the stream.

        Raises: CallError: the profile or the epoch can't be served.
        """
        if call.profile not in self.profiles:
            raise CallError(Cause.NOT_CONFIGURED, f"profile {call.profile!r} was not configured")
        self._check_epoch(call)
        self._follow(call)
        while call.generation > self.mirror.generation:
            await self._moved()
            self._check_epoch(call)

    async def _moved(self) -> None:
        """Wait until another generation is held, or none."""
        await in_task()
        moved = asyncio.get_running_loop().create_future()
        self._waiting.add(moved)
        try:
            await moved
        finally:
            self._waiting.discard(moved)

    def pod(self, ref: common_pb2.PodRef) -> Pod:
        """Return the pod's view, remembered from an earlier call of the attempt if it isn't sent.

        Raises: CallError: the host has to send it, or what it sent is no pod.
        """
        if ref.HasField("object"):
            try:
                view = pod_view(ref.object, self.remembered(ref.uid))
            except msgspec.MsgspecError as error:
                raise ValueError(f"pod {ref.namespace}/{ref.name}: {error}") from error
            self._remember(ref, view)
            return view
        attempt, known = self.pods.get(ref.uid, (0, None))
        if known is None or attempt != ref.attempt:
            raise CallError(Cause.POD_UNKNOWN, f"pod {ref.namespace}/{ref.name}: its object is needed")
        return known

    def remembered(self, uid: str) -> Pod | None:
        """Return the pod's view of an earlier call, whatever became of it since."""
        return self.pods.get(uid, _NO_POD)[1]

    def nodes(self, call: common_pb2.Call, candidates: scheduling_pb2.Candidates | None = None) -> Nodes:
        """Return all nodes at the call's indices, with those asked about.

        Raises: CallError: nodes have moved since; ValueError: the candidates are not of this many nodes.
        """
        self._check_epoch(call)
        if call.generation < self.mirror.layout_since:
            text = f"node indices of generation {call.generation} ended at {self.mirror.layout_since}"
            raise CallError(Cause.GENERATION_GONE, text)
        nodes = Nodes(self.mirror) if candidates is None else self._among(candidates)
        return nodes.kept() if self._keeps_nodes else nodes

    def _among(self, candidates: scheduling_pb2.Candidates) -> Nodes:
        count = len(self.mirror.nodes)
        if candidates.HasField("indices"):
            return Nodes(self.mirror, listed=unpack_indices(candidates.indices, count))
        return Nodes(self.mirror, unpack_bits(candidates.bitmap, count))

    def node(self, name: str) -> Node | None:
        """Return a node by name, None if it is gone."""
        index = self.mirror.index.get(name)
        return None if index is None else self.mirror.nodes[index]

    def _check_epoch(self, call: common_pb2.Call) -> None:
        if not self.mirror.generation or call.epoch != self.mirror.epoch:
            raise CallError(Cause.NOT_SYNCED, f"epoch {self.mirror.epoch!r} is held, not {call.epoch!r}")

    def _follow(self, call: common_pb2.Call) -> None:
        before = self.mirror.generation
        try:
            for delta in call.deltas:
                self.mirror.follow(delta)
        except SyncError as error:
            if error.reason != state_pb2.NACK_REASON_GAP:
                raise CallError(Cause.NOT_SYNCED, str(error)) from error
        finally:
            if before != self.mirror.generation:
                self.announce()

    def _remember(self, ref: common_pb2.PodRef, view: Pod) -> None:
        self.pods[ref.uid] = (ref.attempt, view)
        self.pods.move_to_end(ref.uid)
        if len(self.pods) > self.remembered_pods:
            self.pods.popitem(last=False)


def key_of(ref: common_pb2.PodRef) -> PodKey:
    """Return the attempt's identity."""
    return PodKey(ref.uid, ref.attempt, ref.namespace, ref.name)
