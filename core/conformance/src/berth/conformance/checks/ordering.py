"""SortKeys: where pods stand in the queue."""

from typing import Any

from berth.conformance.answers import same
from berth.conformance.check import check
from berth.conformance.host_state import HostState, shown
from berth.conformance.samples import Document, renamed
from berth.conformance.subject import PluginUnderTest, readable
from berth.framework.queueing.queued_pod import SortKey
from berth.out_of_tree.packing import sort_keys_of
from berth_plugin_proto import queueing_pb2

CLAUSE = "Queue order"
NEEDS = ("QUEUE_SORT",)


async def _keys(
    host: HostState,
    pods: list[Document],
    *,
    left: tuple[str, ...] = (),
    anew: bool = False,
    stub: Any = None,
) -> list[SortKey]:
    """The pods' keys."""
    subject = host.subject
    request = queueing_pb2.SortKeysRequest(
        profile=subject.options.profile,
        pods=[host.call(pod).pod for pod in pods],
        left_uids=left,
        anew=anew,
    )
    queueing = stub or subject.queueing
    response = readable(await queueing.SortKeys(request, timeout=subject.options.seconds))
    return sort_keys_of("under test", response.keys, len(pods))


@check("sort-keys/answer", "SortKeys gives each pod a key", CLAUSE, needs=NEEDS)
async def answer(subject: PluginUnderTest) -> None:
    """At most 8 parts each, in the pods' order."""
    await _keys(await shown(subject), subject.pods, anew=True)


@check(
    "sort-keys/nothing-asked",
    "SortKeys is answered where no pod is asked about",
    CLAUSE,
    needs=NEEDS,
    after=("sort-keys/answer",),
)
async def nothing_asked(subject: PluginUnderTest) -> None:
    """Such a call says only who left."""
    host = await shown(subject)
    await _keys(host, [], anew=True)
    await _keys(host, [], left=(subject.pods[0]["metadata"]["uid"],))


@check(
    "sort-keys/anew",
    "asked anew, pods have the keys that they had",
    CLAUSE,
    needs=NEEDS,
    after=("sort-keys/answer",),
)
async def anew_alike(subject: PluginUnderTest) -> None:
    """What was asked about before a lost connection counts no more."""
    host = await shown(subject)
    first = await _keys(host, subject.pods, anew=True)
    others = [renamed(pod, f"more-{number}") for number, pod in enumerate(subject.pods)]
    await _keys(host, others)
    same(first, await _keys(host, subject.pods, anew=True), "the keys as asked at first")


@check(
    "sort-keys/again",
    "a pod that is asked about twice is one pod",
    CLAUSE,
    needs=NEEDS,
    after=("sort-keys/anew",),
)
async def again(subject: PluginUnderTest) -> None:
    """The host repeats a call that failed for it."""
    host = await shown(subject)
    first = await _keys(host, subject.pods, anew=True)
    same(first, await _keys(host, subject.pods), "the keys as asked at first")


@check(
    "sort-keys/left",
    "pods that left change no key of those that come later",
    CLAUSE,
    needs=NEEDS,
    after=("sort-keys/again", "sort-keys/nothing-asked"),
)
async def left(subject: PluginUnderTest) -> None:
    """Unknown ones are none of the plugin's business."""
    host = await shown(subject)
    first = await _keys(host, subject.pods, anew=True)
    others = [renamed(pod, f"more-{number}") for number, pod in enumerate(subject.pods)]
    await _keys(host, others, anew=True)
    uids = tuple(pod["metadata"]["uid"] for pod in others)
    same(
        first,
        await _keys(host, subject.pods, left=(*uids, "unknown")),
        "the keys as if none had come before",
    )


@check(
    "sort-keys/ttrpc",
    "keys over ttrpc are those over gRPC",
    "ttrpc beside gRPC",
    needs=(*NEEDS, "ttrpc_socket"),
    after=("sort-keys/anew",),
)
async def over_ttrpc(subject: PluginUnderTest) -> None:
    """It is another way for the same calls."""
    host = await shown(subject)
    first = await _keys(host, subject.pods, anew=True)
    queueing = (await subject.over_ttrpc()).service("QueueingService")
    same(first, await _keys(host, subject.pods, anew=True, stub=queueing), "the keys over gRPC")
