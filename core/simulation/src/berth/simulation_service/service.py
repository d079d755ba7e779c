"""berth.simulation.v1, without the wire: requests in, responses out.

Source: proto/berth/simulation/v1/simulation.proto.
"""

import math
from collections.abc import Sequence
from typing import Final

from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.placing.fill import Fill, fill
from berth.simulation.placing.fitting import Added, FittingNodes, Objective, would_fit
from berth.simulation.placing.one_by_one import Left, Pace
from berth.simulation.placing.shapes import AddableNode
from berth.simulation.reading.inputs import ClusterInput, read_objects, read_snapshot
from berth.simulation.reading.kinds import BY_NAME
from berth.simulation.running.options import SimulationOptions
from berth.simulation.what_if.changes import changed_at_once, parsed
from berth.simulation_service.errors import WrongRequestError
from berth.simulation_service.forks import Base, Forks, ForkVersion
from berth.simulation_service.limits import ServiceLimits, check
from berth.simulation_service.queries import Queries
from berth_simulation_proto import simulation_pb2 as pb

LARGEST: Final = (1 << 63) - 1
"""Of an amount on the wire."""
OBJECTIVES: Final = {
    pb.OBJECTIVE_UNSPECIFIED: Objective.NODES,
    pb.OBJECTIVE_FEWEST_NODES: Objective.NODES,
    pb.OBJECTIVE_LEAST_WASTE: Objective.WASTE,
    pb.OBJECTIVE_LOWEST_PRICE: Objective.PRICE,
}


class SimulationService:
    """Answers clients, each of which is named by its identity. Every method raises QueryError, InputError."""

    def __init__(
        self, options: SimulationOptions, base: Base, forks: Forks, queries: Queries, limits: ServiceLimits
    ) -> None:
        self._options = options
        self._base = base
        self._forks = forks
        self._queries = queries
        self._limits = limits

    async def create_fork(self, client: str, request: pb.CreateForkRequest) -> pb.CreateForkResponse:
        """Keep a copy of a cluster."""
        base = request.WhichOneof("base")
        if base is None:
            raise WrongRequestError("base: found none; give live or snapshot")

        def read(pace: Pace) -> ClusterInput:
            del pace
            return read_snapshot(request.snapshot, "snapshot", max_bytes=self._limits.unpacked_bytes)

        async with self._queries.of(client) as in_thread:
            self._forks.room(client)
            cluster = self._base() if base == "live" else await in_thread(read)
            version = ForkVersion(cluster, len(request.snapshot))
            fork_id = self._forks.create(client, version)
        idle = int(self._limits.idle_seconds)
        return pb.CreateForkResponse(
            fork_id=fork_id, idle_seconds=idle, nodes=version.nodes, pods=version.pods
        )

    async def apply_to_fork(self, client: str, request: pb.ApplyToForkRequest) -> pb.ApplyToForkResponse:
        """Change objects of a fork, all or none of them."""
        check("changes", len(request.remove) + len(request.put), self._limits.changes)
        async with self._queries.of(client) as in_thread:
            before = self._forks.get(client, request.fork_id)
            after = await in_thread(lambda _: applied(before, request))
            self._forks.put(client, request.fork_id, after)
        return pb.ApplyToForkResponse(nodes=after.nodes, pods=after.pods)

    async def would_fit(self, client: str, request: pb.WouldFitRequest) -> pb.WouldFitResponse:
        """Say which nodes would make the pods fit."""
        check("pods", len(request.pods), self._limits.asked_pods)
        check("shapes", len(request.shapes), self._limits.shapes)
        if request.objective not in OBJECTIVES:
            raise WrongRequestError(f"objective: found {request.objective}; give one of the protocol's")
        async with self._queries.of(client) as in_thread:
            cluster = self._cluster(client, request.fork_id)
            return await in_thread(lambda pace: self._fitted(request, cluster, pace))

    def _fitted(self, request: pb.WouldFitRequest, cluster: ClusterInput, pace: Pace) -> pb.WouldFitResponse:
        pods = pods_of(request.pods, cluster)
        shapes = [_shape(each, f"shapes[{i}]") for i, each in enumerate(request.shapes)]
        if len({shape.name for shape in shapes}) < len(shapes):
            raise WrongRequestError("shapes: found a name twice; name each shape once")
        objective = OBJECTIVES[request.objective]
        found = would_fit(cluster, pods, shapes, self._options, objective=objective, pace=pace)
        return _response(found, pods, request.shapes)

    async def what_if(self, client: str, request: pb.WhatIfRequest) -> pb.WhatIfResponse:
        """Say what changes come to, beside the cluster without them."""
        if not request.changes:
            raise WrongRequestError("changes: found none; give one such as `drain zone=a`")
        check("changes", len(request.changes), self._limits.shapes)
        check("pods", len(request.pods), self._limits.asked_pods)
        check("max_copies", request.max_copies, self._limits.pods)
        async with self._queries.of(client) as in_thread:
            cluster = self._cluster(client, request.fork_id)
            return await in_thread(lambda pace: self._changed(request, cluster, pace))

    def _changed(self, request: pb.WhatIfRequest, cluster: ClusterInput, pace: Pace) -> pb.WhatIfResponse:
        pods, then = pods_of(request.pods, cluster) if request.pods else [], cluster
        for text in request.changes:
            with pace():
                then = changed_at_once(then, [parsed(text)])
            check("nodes", len(then.of(Node)), self._limits.nodes)
        most = (request.max_copies or self._limits.pods) if pods else 0
        return _beside(fill(cluster, pods, self._options, most=most, labels=(), then=then, pace=pace))

    def _cluster(self, client: str, fork_id: str) -> ClusterInput:
        return self._forks.get(client, fork_id).cluster if fork_id else self._base()

    async def drop_fork(self, client: str, request: pb.DropForkRequest) -> pb.DropForkResponse:
        """Forget a fork."""
        self._forks.drop(client, request.fork_id)
        return pb.DropForkResponse()


def pods_of(documents: Sequence[bytes], cluster: ClusterInput) -> list[Pod]:
    """The pods that are to fit, in their order. Raises: InputError, WrongRequestError."""
    read = read_objects(documents, "pods", cluster)
    pods: list[Pod] = [*read.of(Pod).values()]
    if not pods or len(pods) < len(documents):
        raise WrongRequestError("pods: found none, another kind, or a finished one; give pods that wait")
    running = {each.uid for each in cluster.of(Pod).values() if each.node_name}
    for pod in pods:
        if pod.node_name or pod.uid in running:
            raise WrongRequestError(f"Pod {pod.key}: it is on a node; ask about pods that have none")
    return pods


def _shape(shape: pb.NodeShape, name: str) -> AddableNode:
    nodes = [*read_objects([shape.node], f"{name}.node").of(Node).values()]
    if len(nodes) != 1:
        raise WrongRequestError(f"{name}.node: found no Node; give the JSON of a v1 Node")
    if not shape.name:
        raise WrongRequestError(f"{name}.name: found nothing; name the shape")
    if not shape.max_count:
        raise WrongRequestError(f"{name}.max_count: found 0; say how many there could be")
    price = shape.price if shape.HasField("price") else None
    if price is not None and not (0 <= price < math.inf):
        raise WrongRequestError(f"{name}.price: found {price}; give a number that is not negative")
    return AddableNode(shape.name, nodes[0], shape.max_count, price)


def applied(version: ForkVersion, request: pb.ApplyToForkRequest) -> ForkVersion:
    """The fork as the request wants it. Raises: InputError, WrongRequestError."""
    cluster, gone = version.cluster.copy(), set[str]()
    for number, each in enumerate(request.remove):
        kind = BY_NAME.get((each.api_version.rpartition("/")[0], each.kind))
        if kind is None:
            raise WrongRequestError(
                f"remove[{number}].kind: found {each.kind[:60]!r}, which no decision reads"
            )
        key = f"{each.namespace}/{each.name}" if kind.resource.namespaced else each.name
        cluster.objects[kind.type].pop(key, None)
        if kind.type is Node:
            gone.add(each.name)
    if gone:
        pods: dict[str, Pod] = cluster.of(Pod)
        cluster.objects[Pod] = {key: pod for key, pod in pods.items() if pod.node_name not in gone}
    for _, obj in read_objects(request.put, "put", cluster).all():
        cluster.objects[type(obj)][obj.key] = obj
    return ForkVersion(cluster, version.put_bytes + sum(map(len, request.put)))


def _response(
    found: FittingNodes, pods: Sequence[Pod], shapes: Sequence[pb.NodeShape]
) -> pb.WouldFitResponse:
    places = {pod.key: index for index, pod in enumerate(pods)}
    order = [shape.name for shape in shapes]
    return pb.WouldFitResponse(
        fit_now=found.placed,
        left_now=_left(found.left, places),
        shapes=[_added(each, places, order) for each in found.shapes],
        mixture=_added(found.mixture, places, order),
    )


def _beside(found: Fill) -> pb.WhatIfResponse:
    left = (
        pb.EvictedPod(namespace=namespace, name=name, message=each.message)
        for each in found.evicted_pending
        for namespace, _, name in [each.pod.partition("/")]
    )
    before = None if found.before is None else _in_use(found.before)
    return pb.WhatIfResponse(before=before, after=_in_use(found), evicted=found.evicted, left=left)


def _in_use(found: Fill) -> pb.InUse:
    resources = {
        name: pb.ResourceUse(allocatable=min(use.allocatable, LARGEST), requested=min(use.requested, LARGEST))
        for name, use in found.utilization.items()
    }
    stopped_by = "" if found.stopped_by is None else found.stopped_by.message
    return pb.InUse(
        nodes_in_use=len(found.nodes_in_use), copies=found.count, stopped_by=stopped_by, resources=resources
    )


def _added(found: Added, places: dict[str, int], order: Sequence[str]) -> pb.Added:
    return pb.Added(
        nodes=[pb.ShapeCount(name=name, count=found.nodes[name]) for name in order if name in found.nodes],
        placed=found.placed,
        left=_left(found.left, places),
        waste=found.waste,
        price=found.price,
    )


def _left(left: Sequence[Left], places: dict[str, int]) -> list[pb.PodLeft]:
    by_place = sorted((places[each.pod.key], each.status.message) for each in left)
    return [pb.PodLeft(index=index, message=message) for index, message in by_place]
