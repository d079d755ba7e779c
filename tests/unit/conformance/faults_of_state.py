"""Broken mirrors of the cluster."""

from berth_plugin_proto import state_pb2 as pb
from berth_sdk.outcomes import PodStage
from berth_sdk.state import NodeRow
from berth_sdk.sync import Stage
from tests.unit.conformance.broken import Fault
from tests.unit.conformance.reference import Slots


def ack(generation):
    return pb.SyncResponse(ack=pb.Ack(generation=generation))


def nack(reason):
    return pb.SyncResponse(nack=pb.Nack(reason=reason))


def on(body, answer):
    """A stream where `answer(server, stream, message)` answers or changes messages of a kind."""

    async def take(server, stream, request):
        response = None
        if request.WhichOneof("body") == body:
            response = answer(server, stream, getattr(request, body))
        return await stream.answer(request) if response is None else response

    return Fault(take=take)


async def acked_wrongly(stream, request, body):
    response = await stream.answer(request)
    if request.WhichOneof("body") == body and response.WhichOneof("body") == "ack":
        response.ack.generation += 1
    return response


def wrong_ack(body):
    async def take(_server, stream, request):
        return await acked_wrongly(stream, request, body)

    return Fault(take=take)


def refuses(size):
    def answer(_server, stream, commit):
        if not size(commit.node_count):
            return None
        stream.session.mirror.drop()
        stream.stage = Stage.WAITING
        return nack(pb.NACK_REASON_MISMATCH)

    return on("commit", answer)


def no_empty_chunks(_server, stream, chunk):
    if stream.stage is Stage.TRANSFERRING and not chunk.changes:
        return nack(pb.NACK_REASON_OUT_OF_ORDER)
    return None


def drops_at_begin(server, _stream, begin):
    if not begin.HasField("resume_generation"):
        server.mirror.drop()


def keeps_pods(server, stream, _commit):
    if stream.epoch == server.mirror.epoch:
        stream.steps = [*stream.steps, *server.mirror.pods.values()]


def believes_commits(_server, stream, commit):
    commit.node_count = sum(isinstance(step, NodeRow) for step in stream.steps)


def swallows_bad(_server, _stream, delta):
    if any(change.node_upsert.name == "bad" for change in delta.changes):
        return ack(delta.generation)
    return None


def ignores_order(server, stream, _chunk):
    return ack(server.mirror.generation) if stream.stage is Stage.WAITING else None


def no_repeats(server, _stream, delta):
    return nack(pb.NACK_REASON_GAP) if delta.generation <= server.mirror.generation else None


def jumps(server, _stream, delta):
    if delta.base_generation <= server.mirror.generation:
        return None
    server.mirror.generation = delta.generation
    return ack(delta.generation)


def clamps(server, _stream, delta):
    for change in delta.changes:
        if change.WhichOneof("change") == "node_upsert":
            change.node_upsert.index = min(change.node_upsert.index, len(server.mirror.nodes))


def any_name(server, _stream, delta):
    for change in delta.changes:
        if change.WhichOneof("change") == "node_remove":
            change.node_remove.name = server.mirror.nodes[change.node_remove.index].name


def any_count(server, _stream, delta):
    if not delta.changes and delta.base_generation == server.mirror.generation:
        delta.node_count = len(server.mirror.nodes)


async def once_refused(_server, stream, request):
    if getattr(stream, "refused", False):
        return nack(pb.NACK_REASON_OUT_OF_ORDER)
    response = await stream.answer(request)
    stream.refused = response is not None and response.WhichOneof("body") == "nack"
    return response


def keeps_after_nack(server, stream, delta):
    if delta.base_generation <= server.mirror.generation:
        return None
    stream.stage = Stage.WAITING
    return nack(pb.NACK_REASON_GAP)


def knows_all(server, _stream, delta):
    for change in delta.changes:
        if change.WhichOneof("change") == "pod_remove" and change.pod_remove.uid not in server.mirror.pods:
            return nack(pb.NACK_REASON_MISMATCH)
    return None


async def shifts(server, stream, request):
    names = [node.name for node in server.mirror.nodes]
    response = await stream.answer(request)
    for change in request.delta.changes:
        if change.WhichOneof("change") == "node_remove" and response.HasField("ack"):
            names.remove(change.node_remove.name)
            server.mirror.nodes.sort(key=lambda node: names.index(node.name))
            server.mirror.index.update({name: row for row, name in enumerate(names)})
    return response


def leaves_out(which):
    def answer(server, _stream, delta):
        kept = [change for change in delta.changes if not which(server, change)]
        del delta.changes[:]
        delta.changes.extend(kept)

    return on("delta", answer)


def is_nominated(server, uid):
    return uid in server.mirror.pods and server.mirror.pods[uid].stage is PodStage.NOMINATED


def stays_where_it_was(server, change):
    """A nomination to another node is passed over."""
    return is_nominated(server, change.pod_upsert.uid) and change.pod_upsert.stage == PodStage.NOMINATED


class CountsTwice(Slots):
    """A pod that was assumed counts again once it is placed."""

    def __init__(self):
        super().__init__()
        self.stages = {}

    def pod_upserted(self, placed):
        if placed.stage is PodStage.PLACED and self.stages.get(placed.uid) is PodStage.ASSUMED:
            self.held[f"{placed.uid}-twice"] = 1, placed.node_name
        self.stages[placed.uid] = placed.stage


class Restless(Slots):
    """A transfer changes what is said of pods that were asked about before."""

    def __init__(self):
        super().__init__()
        self.asked, self.again = set(), set()

    def state_reset(self, *, epoch_changed):
        super().state_reset(epoch_changed=epoch_changed)
        self.again = set() if epoch_changed else set(self.asked)
        self.asked = set()

    def score_nodes(self, pod, nodes):
        self.asked.add(pod.uid)
        return super().score_nodes(pod, nodes) + (pod.uid in self.again)


def older(held):
    return pb.Held(epoch=held.epoch, generation=held.generation - (held.generation > 1))


def resumed(when, answer):
    def take(server, _stream, begin):
        if not begin.HasField("resume_generation"):
            return None
        return answer(server) if when(server.mirror, begin) else None

    return on("begin", take)


def never(_server):
    return nack(pb.NACK_REASON_CANNOT_RESUME)


def always(server):
    return ack(server.mirror.generation)


def known_epochs():
    """Calls of epochs that are over are answered."""

    async def take(server, stream, request):
        if request.WhichOneof("body") == "begin":
            server.memory.setdefault("epochs", set()).add(request.begin.epoch)
        return await stream.answer(request)

    async def call(server, name, request, proceed):
        mirror, head = server.mirror, request.call if name == "Filter" else None
        if head and mirror.generation and head.epoch in server.memory["epochs"] - {mirror.epoch}:
            head.epoch, head.generation = mirror.epoch, mirror.generation
        return await proceed(request)

    return Fault(call, take)


def is_update(server, change):
    return change.WhichOneof("change") == "node_upsert" and change.node_upsert.index < len(
        server.mirror.nodes
    )


FAULTS = {
    "sync/held-first": Fault(held=lambda _: pb.Held(epoch="torn")),
    "sync/transfer": wrong_ack("commit"),
    "sync/delta": wrong_ack("delta"),
    "sync/many-nodes": refuses(lambda count: count > 50),
    "sync/no-nodes": refuses(lambda count: count == 0),
    "sync/one-node": refuses(lambda count: count == 1),
    "sync/empty-chunk": on("chunk", no_empty_chunks),
    "sync/until-commit": on("begin", drops_at_begin),
    "sync/replaces": on("commit", keeps_pods),
    "sync/new-epoch": known_epochs(),
    "sync/newest-stream": Fault(supersedes=False),
    "sync/lost-chunk": on("commit", believes_commits),
    "sync/bad-object": on("delta", swallows_bad),
    "sync/out-of-order": on("chunk", ignores_order),
    "sync/repeated-delta": on("delta", no_repeats),
    "sync/gap": on("delta", jumps),
    "sync/wrong-index": on("delta", clamps),
    "sync/wrong-name": on("delta", any_name),
    "sync/wrong-count": on("delta", any_count),
    "sync/after-nack": Fault(take=once_refused),
    "sync/nothing-held": on("delta", keeps_after_nack),
    "sync/unknown-removals": on("delta", knows_all),
    "sync/node-removal": Fault(take=shifts),
    "sync/node-update": leaves_out(is_update),
    "sync/pod-stages": Fault(plugin=CountsTwice),
    "sync/pod-removal": leaves_out(
        lambda s, c: c.WhichOneof("change") == "pod_remove" and c.pod_remove.uid in s.mirror.pods
    ),
    "sync/nominated": leaves_out(stays_where_it_was),
    "sync/nomination-gone": leaves_out(
        lambda s, c: c.WhichOneof("change") == "pod_remove" and is_nominated(s, c.pod_remove.uid)
    ),
    "sync/random-steps": leaves_out(lambda _s, c: c.pod_upsert.uid.startswith("uid-of-placed-")),
    "sync/held-again": Fault(held=older),
    "sync/resume": resumed(lambda m, b: b.resume_generation == m.generation and b.epoch == m.epoch, never),
    "sync/resume-early": resumed(lambda m, b: b.resume_generation < m.generation, never),
    "sync/resume-unknown-epoch": resumed(lambda m, b: b.epoch != m.epoch, always),
    "sync/resume-ahead": resumed(
        lambda m, b: b.resume_generation > m.generation and b.epoch == m.epoch, always
    ),
    "sync/mid-cycle": Fault(plugin=Restless),
}
