"""Candidates listed by index: the answers are those to the bitmap of the same nodes, entry by entry."""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import grpc
import numpy as np

from berth.conformance.answers import Comparable, filtered, passing, same, scores_in, verdicts_in
from berth.conformance.check import check
from berth.conformance.host_state import HostState, shown
from berth.conformance.samples import Document
from berth.conformance.subject import PluginUnderTest, refused, skip
from berth_plugin_proto import common_pb2, scheduling_pb2

CLAUSE = "Vectors"
MANY_NODES = 300
SOME_ROWS = (0, 1, 2, 130, 255, 256, 299)
"""Indices of one byte, of one that is negative where bytes are signed, and of two."""
FILTERS = ("FILTER", "nodes", "listed_candidates")
SCORES = ("SCORE", "nodes", "listed_candidates")
DOES_BOTH = ("FILTER", *SCORES)


class NodeCall(NamedTuple):
    """A call about nodes.

    `read(response, n, rows)` gives what an answer of n entries says of these rows (None: of all n);
    `part` is the part of the answer whose status says whether there are entries.
    """

    name: str
    read: Callable[[Any, int, list[int] | None], Comparable]
    part: Callable[[Any], Any] = lambda response: response


def _both_in(response: Any, n: int, rows: list[int] | None = None) -> Comparable:
    """The verdicts, and the scores of the nodes that pass."""
    asked = list(range(n)) if rows is None else rows
    verdicts = verdicts_in(response.filter, n, rows)
    left = [asked[place] for place in passing(verdicts, len(asked))]
    scores = scores_in(response.score, n, left) if response.HasField("score") else ()
    return verdicts, scores if left else ()


FILTER = NodeCall("Filter", verdicts_in)
SCORE = NodeCall("Score", scores_in)
FILTER_SCORE = NodeCall("FilterScore", _both_in, lambda response: response.filter)


def _listed(*rows: int) -> scheduling_pb2.Candidates:
    return scheduling_pb2.Candidates(indices=np.array(rows, dtype="<u4").tobytes())


async def _as_by_bitmap(host: HostState, call: NodeCall, pod: Document, rows: list[int]) -> None:
    """Raises: UnmetError, ProtocolError unless the listed rows have the answer that their bitmap has."""
    by_bitmap = await host.ask(call.name, pod, candidates=host.candidates(rows))
    by_list = await host.ask(call.name, pod, candidates=_listed(*rows))
    wanted = call.read(by_bitmap, len(host.nodes), rows)
    same(wanted, call.read(by_list, len(rows), None), f"{call.name}'s answer to the bitmap of these nodes")


async def _feasible(host: HostState, pod: Document) -> list[int]:
    """The rows that may be asked about; for a plugin that wants to see feasible nodes only, those."""
    n = len(host.nodes)
    if not (host.subject.capabilities.score_needs_feasible and host.subject.offers("FILTER")):
        return list(range(n))
    return passing(await filtered(host, pod), n)


async def _some_listed(subject: PluginUnderTest, call: NodeCall) -> None:
    """Some nodes of many, one alone and all."""
    host = await shown(subject, MANY_NODES)
    for pod in subject.pods:
        rows = await _feasible(host, pod)
        for chosen in ([row for row in rows if row in SOME_ROWS], rows[-1:], rows):
            if chosen:
                await _as_by_bitmap(host, call, pod, chosen)


async def _nothing_listed(subject: PluginUnderTest, call: NodeCall) -> None:
    host = await shown(subject)
    for pod in subject.pods:
        await _as_by_bitmap(host, call, pod, [])


async def _wrong_lists(host: HostState, call: NodeCall) -> AsyncIterator[tuple[Document, str, Any]]:
    """Candidates that are to be refused, in words too, and a pod for which the call has entries."""
    n = len(host.nodes)
    wrong = {
        "indices of 5 bytes": scheduling_pb2.Candidates(indices=bytes(5)),
        "indices that are not ascending": _listed(1, 0),
        "an index that is listed twice": _listed(0, 0),
        "an index that is the node count": _listed(0, n),
        "an index of 32 bits": _listed(0, 2**32 - 1),
    }
    for pod in host.subject.pods:
        status = call.part(await host.ask(call.name, pod, candidates=_listed(0))).status
        if status.code == common_pb2.CODE_SUCCESS:
            for words, candidates in wrong.items():
                yield pod, words, candidates
            return
    raise skip(f"{call.name} answers SUCCESS for none of the pods (give others with --pods)")


async def _refused_where_wrong(subject: PluginUnderTest, call: NodeCall) -> None:
    host = await shown(subject)
    async for pod, words, candidates in _wrong_lists(host, call):
        answer = host.ask(call.name, pod, candidates=candidates)
        await refused(answer, grpc.StatusCode.INVALID_ARGUMENT, what=words)


def _skip_where_scores_come_later(subject: PluginUnderTest) -> None:
    """Raises: UnsuitableError where FilterScore is not asked."""
    if subject.capabilities.score_needs_feasible:
        raise skip("score_needs_feasible")


@check(
    "filter/listed-candidates",
    "listed nodes have a verdict each, as asked by a bitmap",
    CLAUSE,
    needs=FILTERS,
    after=("filter/candidates", "sync/many-nodes"),
)
async def filter_listed(subject: PluginUnderTest) -> None:
    """In the order of the list, and none for other nodes."""
    await _some_listed(subject, FILTER)


@check(
    "filter/nothing-listed",
    "an empty list asks for the verdict of no node",
    CLAUSE,
    needs=FILTERS,
    after=("filter/listed-candidates", "filter/no-candidates"),
)
async def filter_nothing_listed(subject: PluginUnderTest) -> None:
    """It is present: without candidates all nodes are asked about."""
    await _nothing_listed(subject, FILTER)


@check(
    "filter/wrong-indices",
    "Filter refuses indices that are not ascending, or not there",
    CLAUSE,
    needs=FILTERS,
    after=("filter/listed-candidates",),
)
async def filter_wrong_indices(subject: PluginUnderTest) -> None:
    """The host means another generation's nodes."""
    await _refused_where_wrong(subject, FILTER)


@check(
    "score/listed-candidates",
    "listed nodes have a score each, as asked by a bitmap",
    CLAUSE,
    needs=SCORES,
    after=("score/candidates", "sync/many-nodes"),
)
async def score_listed(subject: PluginUnderTest) -> None:
    """In the order of the list, and none for other nodes."""
    await _some_listed(subject, SCORE)


@check(
    "score/nothing-listed",
    "an empty list asks for the score of no node",
    CLAUSE,
    needs=SCORES,
    after=("score/listed-candidates",),
)
async def score_nothing_listed(subject: PluginUnderTest) -> None:
    """It is present: without candidates all nodes are asked about."""
    await _nothing_listed(subject, SCORE)


@check(
    "score/wrong-indices",
    "Score refuses indices that are not ascending, or not there",
    CLAUSE,
    needs=SCORES,
    after=("score/listed-candidates",),
)
async def score_wrong_indices(subject: PluginUnderTest) -> None:
    """As Filter does."""
    await _refused_where_wrong(subject, SCORE)


@check(
    "filter-score/listed-candidates",
    "FilterScore answers for listed nodes as for their bitmap",
    CLAUSE,
    needs=DOES_BOTH,
    after=("filter-score/score", "filter/candidates", "sync/many-nodes"),
)
async def both_listed(subject: PluginUnderTest) -> None:
    """Verdicts of all that are listed, scores of those that pass."""
    _skip_where_scores_come_later(subject)
    await _some_listed(subject, FILTER_SCORE)


@check(
    "filter-score/nothing-listed",
    "FilterScore is answered where an empty list asks about no node",
    CLAUSE,
    needs=DOES_BOTH,
    after=("filter-score/listed-candidates", "filter-score/none-left"),
)
async def both_nothing_listed(subject: PluginUnderTest) -> None:
    """The scores may be absent then; the verdicts are not."""
    _skip_where_scores_come_later(subject)
    await _nothing_listed(subject, FILTER_SCORE)


@check(
    "filter-score/wrong-indices",
    "FilterScore refuses indices that are not ascending, or not there",
    CLAUSE,
    needs=DOES_BOTH,
    after=("filter-score/listed-candidates",),
)
async def both_wrong_indices(subject: PluginUnderTest) -> None:
    """As Filter does."""
    _skip_where_scores_come_later(subject)
    await _refused_where_wrong(subject, FILTER_SCORE)
