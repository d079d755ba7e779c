"""The cluster-autoscaler's expander: of the node groups that could grow, those worth growing.

    option --> its pods, on as many new nodes as it says --> does not help: dropped
                                                         --> waste, and whether all its pods fit --> the best

Options that make all their pods fit come before those that make only some of them fit; among equals, those
are best that waste least of what they add. Several that are best are all returned, and the autoscaler's next
expander chooses among them.
Source: cluster-autoscaler/expander/grpcplugin, expander/waste (kubernetes/autoscaler).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar

import msgspec

from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.sandbox.bodies.protobuf import ProtobufError, read_bare
from berth.simulation.errors import InputError
from berth.simulation.placing.fitting import Fitting, on_cluster
from berth.simulation.placing.one_by_one import Pace, check_scheduler_name
from berth.simulation.placing.shapes import AddableNode
from berth.simulation.reading.inputs import ClusterInput, read_objects
from berth.simulation.running.options import SimulationOptions
from berth.simulation_service.errors import WrongRequestError
from berth.simulation_service.forks import Base
from berth.simulation_service.limits import ServiceLimits, check
from berth.simulation_service.queries import Queries
from berth_expander_proto import expander_pb2 as pb

K = TypeVar("K", Node, Pod)
Rank = tuple[int, float]
"""The least is the best: what becomes of the pods, and the waste."""
ALL_FIT, SOME_FIT, UNKNOWN = range(3)


class _Option(msgspec.Struct, frozen=True):
    """An option as the engine reads it; `pods` are those that this scheduler decides on."""

    pods: Sequence[Pod]
    shape: AddableNode


class Expander:
    """Chooses among the autoscaler's options. Raises QueryError, InputError."""

    def __init__(
        self, options: SimulationOptions, base: Base, queries: Queries, limits: ServiceLimits
    ) -> None:
        self._options = options
        self._base = base
        self._queries = queries
        self._limits = limits
        self._profiles = {profile.scheduler_name for profile in options.loaded.profiles}

    async def best_options(self, client: str, request: pb.BestOptionsRequest) -> pb.BestOptionsResponse:
        """The options worth taking, in their order; none where none helps."""
        check("options", len(request.options), self._limits.shapes)
        for option in request.options:
            check(f"pods of {option.nodeGroupId[:60]}", len(option.pod), self._limits.asked_pods)
            check(f"pods of {option.nodeGroupId[:60]}", len(option.podBytes), self._limits.asked_pods)
        async with self._queries.of(client) as in_thread:
            cluster = self._base()
            ranks = await in_thread(lambda pace: self._ranked(request, cluster, pace))
        best = min((rank for rank in ranks if rank is not None), default=None)
        pairs = zip(request.options, ranks, strict=True)
        return pb.BestOptionsResponse(
            options=[_named(option) for option, rank in pairs if rank and rank == best]
        )

    def _ranked(self, request: pb.BestOptionsRequest, cluster: ClusterInput, pace: Pace) -> list[Rank | None]:
        """Of each option how good it is, None where it does not help."""
        reading, read = _Reading(request, cluster, self._profiles), list[_Option]()
        for option in request.options:
            with pace():
                read.append(reading.option(option))

        async def run(fitting: Fitting) -> list[Rank | None]:
            return [await _rank(fitting, each) for each in read]

        return on_cluster(cluster, self._options, run, pace)


class _Reading:
    """Reads the options of one request; a pod that several of them have is decoded once."""

    def __init__(self, request: pb.BestOptionsRequest, cluster: ClusterInput, profiles: set[str]) -> None:
        self._nodes: Mapping[str, bytes] = request.nodeBytesMap or request.nodeMap
        self._cluster = cluster
        self._profiles = profiles
        self._running = {each.uid for each in cluster.of(Pod).values() if each.node_name}
        self._as_json = cache(_as_json)

    def option(self, option: pb.Option) -> _Option:
        """The option. Raises: WrongRequestError, InputError."""
        name = option.nodeGroupId
        if name not in self._nodes:
            raise WrongRequestError(f"nodeBytesMap: found no node of the group {name[:60]!r}; give one")
        if option.nodeCount < 1:
            raise WrongRequestError(f"option {name[:60]}: nodeCount: found {option.nodeCount}; at least 1")
        (node,) = self._objects(Node, [self._nodes[name]], f"node of {name[:60]}")
        pods = self._objects(Pod, option.podBytes or option.pod, f"pods of {name[:60]}")
        # A pod may have been bound since the autoscaler looked.
        waiting = [pod for pod in pods if not pod.node_name and pod.uid not in self._running]
        return _Option(
            [pod for pod in waiting if self._is_ours(pod)], AddableNode(name, node, option.nodeCount)
        )

    def _is_ours(self, pod: Pod) -> bool:
        """Whether the scheduler decides on the pod: neither another one does, nor is it gated."""
        try:
            check_scheduler_name(pod, self._profiles)
        except InputError:
            return False
        return True

    def _objects(self, kind: type[K], bare: Sequence[bytes], name: str) -> list[K]:
        try:
            documents: list[bytes] = [self._as_json(kind.__name__, data) for data in bare]
        except ProtobufError as error:
            raise WrongRequestError(f"{name}: {error}") from None
        return [*read_objects(documents, name, self._cluster).of(kind).values()]


def _as_json(kind: str, data: bytes) -> bytes:
    """The object of these bytes as JSON. Raises: ProtobufError."""
    return msgspec.json.encode(read_bare(data, "v1", kind))


async def _rank(fitting: Fitting, option: _Option) -> Rank | None:
    """How good the option is, the least being best; None where its nodes make no pod fit."""
    if not option.pods:
        return (UNKNOWN, 0.0)
    before = len(fitting.steps)
    rest = await fitting.ask(option.pods)
    found = await fitting.alone(option.shape, rest, len(fitting.steps))
    await fitting.back_to(before)
    used = sum(found.nodes.values())
    if not used:
        return None
    # The autoscaler adds as many as it says, of which those that are not used are wasted whole.
    waste = (found.waste * used + option.shape.most - used) / option.shape.most
    return (SOME_FIT if found.left else ALL_FIT, round(waste, 6))


def _named(option: pb.Option) -> pb.Option:
    """The option as an answer: of it the autoscaler reads the group's ID, and looks up the rest."""
    return pb.Option(nodeGroupId=option.nodeGroupId, nodeCount=option.nodeCount, debug=option.debug)
