"""Broken answers to calls about nodes."""

import asyncio

from berth_plugin_proto import common_pb2, scheduling_pb2
from berth_sdk.errors import CallError, Cause, ContractError
from berth_sdk.waiting import in_task
from tests.unit.conformance.broken import Fault
from tests.unit.conformance.reference import Slots

GARBLED = b'{"metadata": ['


def answered(names, change):
    """Calls whose answers `change(server, request, response)` changes."""

    async def call(server, name, request, proceed):
        response = await proceed(request)
        if name in names:
            change(server, request, response)
        return response

    return Fault(call)


def asked(names, change):
    """Calls whose requests `change(server, request)` changes, or answers."""

    async def call(server, name, request, proceed):
        response = change(server, request) if name in names else None
        return await proceed(request) if response is None else response

    return Fault(call)


def filters(change):
    """Every answer with verdicts of a filter."""

    def changed(server, request, response):
        change(server, request, response.filter if hasattr(response, "filter") else response)

    return answered({"Filter", "FilterScore"}, changed)


def scores(change):
    """Every answer with scores."""

    def changed(server, request, response):
        if not hasattr(response, "score"):
            change(server, request, response)
        elif response.HasField("score"):
            change(server, request, response.score)

    return answered({"Score", "FilterScore"}, changed)


def short(_server, _request, response):
    response.verdicts.each = response.verdicts.each[:-1]


def waits(_server, request, response):
    if b'"team":"red"' in request.call.pod.object:
        response.status.code = common_pb2.CODE_WAIT
        response.ClearField("verdicts")


def skips_with_verdicts(_server, _request, response):
    response.status.code = common_pb2.CODE_SKIP


def passes(response, code=0):
    response.verdicts.all = code


def turns(server, key):
    server.memory[key] = not server.memory.get(key, False)
    return server.memory[key]


def flips(server, _request, response):
    if turns(server, "flip"):
        passes(response)


def came_before(server, request):
    """Whether a pod that was made again was asked about as it was made first."""
    pod = request.call.pod
    again = pod.uid.startswith(f"uid-of-{pod.name}-")
    return again and pod.uid != server.memory.setdefault("first", {}).setdefault(pod.name, pod.uid)


def bored_filter(server, request, response):
    if came_before(server, request):
        passes(response)


def bored_score(server, request, response):
    if came_before(server, request):
        response.scores.all = 7


def bits(request):
    return sum(byte.bit_count() for byte in request.candidates.bitmap)


def has_bitmap(request):
    return request.HasField("candidates") and not request.candidates.HasField("indices")


def nodes_of(server):
    return len(server.mirror.nodes)


def alone_passes(_server, request, response):
    if bits(request) == 1:
        passes(response)


def some_fail(server, request, response):
    if 1 < bits(request) < nodes_of(server):
        passes(response, 1)
        del response.verdicts.reasons[:]
        response.verdicts.reasons.add(code=common_pb2.CODE_UNSCHEDULABLE, text="not in this company")


def on_two_lines(_server, _request, response):
    for reason in response.verdicts.reasons:
        reason.text += "\nand more"


def none_is_nothing(_server, request, response):
    if has_bitmap(request) and not bits(request):
        response.verdicts.each = b""


def any_bitmap(server, request):
    if has_bitmap(request) and len(request.candidates.bitmap) != -(-nodes_of(server) // 8):
        request.ClearField("candidates")


def one_byte(_server, _request, response):
    response.scores.uint8 = b"\1"


def later(_server, _request, response):
    response.generation += 5


def turned_down(_server, _request, response):
    response.status.code = common_pb2.CODE_UNSCHEDULABLE
    response.status.reasons.append("no")
    response.ClearField("scores")


def unnormalized(_server, _request, response):
    response.scores.normalization = 0


def all_score(points):
    def change(_server, _request, response):
        response.scores.all = points

    return change


def restless_score(server, _request, response):
    response.scores.all = int(turns(server, "score"))


def some_score(server, request, response):
    if 1 < bits(request) < nodes_of(server):
        response.scores.all = 3


def short_filter(_server, _request, response):
    short(_server, _request, response.filter)


def none_left(server, request, response):
    none_is_nothing(server, request, response.filter)


def no_deltas(_server, request):
    del request.call.deltas[:]


def brought_once():
    async def call(server, _name, request, proceed):
        if hasattr(request, "call"):
            server.memory.setdefault("brought", set()).update(
                delta.generation for delta in request.call.deltas
            )
        return await proceed(request)

    async def take(server, stream, request):
        body = request.WhichOneof("body")
        if body == "begin":
            server.memory["brought"] = set()
        if body == "delta" and request.delta.generation in server.memory["brought"]:
            server.mirror.drop()
        return await stream.answer(request)

    return Fault(call, take)


def refuses(cause, when):
    def change(server, request):
        if when(server.mirror, request.call):
            raise CallError(cause, "broken")

    return change


def any_indices(server, request):
    if request.call.generation < server.mirror.layout_since:
        request.call.generation = server.mirror.generation


def any_epoch(server, request):
    if request.call.epoch == "never-used":
        request.call.epoch = server.mirror.epoch


def any_pod(_server, request):
    if request.call.pod.uid.startswith("uid-of-never-sent") and not request.call.pod.HasField("object"):
        request.call.pod.object = b'{"metadata": {"name": "x", "uid": "x"}, "spec": {}}'


def demands_pods(server, request):
    pod = request.call.pod
    if not pod.HasField("object") and pod.uid in server.session.pods:
        raise ValueError("broken")


def remembers_pods(server, request):
    pod = request.call.pod
    if pod.attempt == 2:
        pod.attempt, _ = server.session.pods[pod.uid]
        pod.ClearField("object")


def breaks_over_pods(_server, request):
    if request.call.pod.object == GARBLED:
        return scheduling_pb2.FilterResponse()
    return None


def asked_together():
    """Whether the check waits for several answers at once: it gathers them, so that each has a task."""
    asking = (task.get_coro().__name__ in {"filtered", "_table"} for task in asyncio.all_tasks())
    return sum(asking) > 1


class Busy:
    """One answer at a time: those that are asked for together have none."""

    def __init__(self):
        self.came = 0
        self.met = asyncio.Event()

    async def together(self):
        """Whether this one was asked for beside others; the first of them waits until the second is there."""
        await in_task()
        if not asked_together():
            return False
        self.came += 1
        if self.came > 1:
            self.met.set()
        await self.met.wait()
        return True


def muddles():
    async def call(server, name, request, proceed):
        if name != "Filter" or request.call.generation > server.mirror.generation:
            return await proceed(request)
        busy = server.memory.setdefault("busy", Busy())
        together = await busy.together()
        response = await proceed(request)
        if together:
            passes(response)
        return response

    return Fault(call)


def stuck(server, request):
    if request.call.generation == 99:
        server.memory["stuck"] = True
    elif server.memory.pop("stuck", False):
        raise ContractError("broken")


def no_removals(_server, request):
    for overlay in request.overlays:
        del overlay.removed_pod_uids[:]


def no_additions(_server, request):
    for overlay in request.overlays:
        del overlay.added_pods[:]


def remembers_overlays(server, request):
    for overlay in request.overlays:
        for added in overlay.added_pods:
            if added.stage == 3:
                server.plugin.held[added.uid] = 1, server.mirror.nodes[overlay.node_index].name


def drops_overlays(server, request):
    kept = [overlay for overlay in request.overlays if overlay.node_index < nodes_of(server)]
    del request.overlays[:]
    request.overlays.extend(kept)


class ReadsNamespaces(Slots):
    """Says that it reads one label only."""

    def score_nodes(self, pod, nodes):
        return super().score_nodes(pod, nodes) // (2 if pod.namespace == "another" else 1)


class CountsAllPods(Slots):
    """Says that it is node-local."""

    def score_nodes(self, pod, nodes):
        return super().score_nodes(pod, nodes) + sum(len(nodes.pods_on(node.name)) for node in nodes)


class CountsAllReservations(Slots):
    """Says that it is node-local."""

    def score_nodes(self, pod, nodes):
        return super().score_nodes(pod, nodes) + len(self.held)


FILTER, OVERLAYS = {"Filter"}, {"FilterOverlays"}
FAULTS = {
    "filter/answer": answered(FILTER, short),
    "filter/texts": answered(FILTER, on_two_lines),
    "filter/status": filters(waits),
    "filter/verdicts": filters(skips_with_verdicts),
    "filter/deterministic": answered(FILTER, flips),
    "filter/order": answered(FILTER, bored_filter),
    "filter/one-by-one": answered(FILTER, alone_passes),
    "filter/candidates": answered(FILTER, some_fail),
    "filter/no-candidates": answered(FILTER, none_is_nothing),
    "filter/wrong-bitmap": asked(FILTER, any_bitmap),
    "score/answer": answered({"Score"}, one_byte),
    "score/generation": answered({"Score"}, later),
    "score/status": scores(turned_down),
    "score/normalization": scores(unnormalized),
    "score/range": scores(all_score(200)),
    "score/deterministic": answered({"Score"}, restless_score),
    "score/order": answered({"Score"}, bored_score),
    "score/candidates": answered({"Score"}, some_score),
    "filter-score/answer": answered({"FilterScore"}, short_filter),
    "filter-score/filter": answered({"FilterScore"}, lambda _s, _q, r: passes(r.filter)),
    "filter-score/score": answered({"FilterScore"}, lambda s, q, r: all_score(42)(s, q, r.score)),
    "filter-score/none-left": answered({"FilterScore"}, none_left),
    "calls/generation": answered(FILTER, later),
    "calls/deltas": asked(FILTER, no_deltas),
    "calls/deltas-again": brought_once(),
    "calls/held-deltas": asked(
        FILTER,
        refuses(Cause.NOT_SYNCED, lambda m, c: any(each.generation <= m.generation for each in c.deltas)),
    ),
    "calls/waits": asked(
        FILTER,
        refuses(
            Cause.GENERATION_GONE,
            lambda m, c: c.epoch == m.epoch and c.generation > m.generation and not c.deltas,
        ),
    ),
    "calls/later-generation": asked(
        FILTER, refuses(Cause.GENERATION_GONE, lambda m, c: c.generation < m.generation)
    ),
    "calls/generation-gone": asked(FILTER, any_indices),
    "calls/unknown-epoch": asked(FILTER, any_epoch),
    "calls/unknown-pod": asked(FILTER, any_pod),
    "calls/pod-left-out": asked(FILTER, demands_pods),
    "calls/pod-sent-again": asked(FILTER, remembers_pods),
    "calls/bad-pod": asked(FILTER, breaks_over_pods),
    "calls/side-by-side": muddles(),
    "calls/waiting-blocks-no-other": asked(FILTER, stuck),
    "overlays/answer": answered(OVERLAYS, short),
    "overlays/empty": answered(OVERLAYS, lambda _s, _q, r: passes(r)),
    "overlays/removed": asked(OVERLAYS, no_removals),
    "overlays/added": asked(OVERLAYS, no_additions),
    "overlays/nothing-remembered": asked(OVERLAYS, remembers_overlays),
    "overlays/wrong-index": asked(OVERLAYS, drops_overlays),
    "equal-pods/fields": Fault(plugin=ReadsNamespaces),
    "equal-pods/other-nodes-pods": Fault(plugin=CountsAllPods),
    "equal-pods/other-reservations": Fault(plugin=CountsAllReservations),
}
