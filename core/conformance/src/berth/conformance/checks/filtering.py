"""Filter: equal questions have equal answers, whichever nodes are asked about together."""

import grpc

from berth.conformance.answers import Comparable, filtered, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import shown
from berth.conformance.subject import PluginUnderTest, refused
from berth.out_of_tree.limits import REASON_BYTES, TABLE_BYTES
from berth.out_of_tree.plugin_text import bounded
from berth_plugin_proto import common_pb2, scheduling_pb2

CLAUSE = "Vectors"
NEEDS = ("FILTER", "nodes")
STATUSES = frozenset(common_pb2.Code.values()) - {common_pb2.CODE_UNSPECIFIED, common_pb2.CODE_WAIT}


@check(
    "filter/one-by-one",
    "a node's verdict is the same asked alone",
    CLAUSE,
    needs=NEEDS,
)
async def one_by_one(subject: PluginUnderTest) -> None:
    """The answer for all nodes together is the answer for each node alone."""
    host = await shown(subject)
    for pod in subject.pods:
        together = await filtered(host, pod)
        alone = [await filtered(host, pod, [row]) for row in range(len(host.nodes))]
        same(together, _joined(together, alone), "the verdicts of all nodes together")


def _joined(together: Comparable, alone: list[Comparable]) -> Comparable:
    if together[0] == "SUCCESS" and all(each[0] == "SUCCESS" for each in alone):
        return "SUCCESS", (), tuple(each[2][0] for each in alone)
    return next((each for each in alone if each != together), together)


@check(
    "filter/candidates",
    "nodes that are not asked about change no verdict",
    CLAUSE,
    needs=NEEDS,
    after=("filter/one-by-one",),
)
async def candidates(subject: PluginUnderTest) -> None:
    """Every second node is asked about."""
    host = await shown(subject)
    rows = list(range(0, len(host.nodes), 2))
    for pod in subject.pods:
        status, reasons, texts = await filtered(host, pod)
        wanted = (status, reasons, tuple(texts[row] for row in rows) if texts else ())
        same(wanted, await filtered(host, pod, rows), "the verdicts as of all nodes")


@check(
    "filter/texts",
    "reasons are short, and on one line without control characters",
    "Limits",
    needs=NEEDS,
)
async def texts(subject: PluginUnderTest) -> None:
    """The host cuts and escapes them otherwise, since they come to stand in pods' conditions."""
    host = await shown(subject)
    for pod in subject.pods:
        response = await host.ask("Filter", pod)
        reasons = [each.text for each in response.verdicts.reasons]
        most = min(REASON_BYTES, TABLE_BYTES // max(len(reasons), 1))
        for text in (*reasons, *response.status.reasons):
            expect(text == bounded(text, most), f"one line of at most {most} bytes", repr(text[:200]))


@check("filter/no-candidates", "to ask about no node is a question", CLAUSE, needs=NEEDS)
async def no_candidates(subject: PluginUnderTest) -> None:
    """A bitmap of zeros has an answer of the usual length."""
    host = await shown(subject)
    for pod in subject.pods:
        await filtered(host, pod, [])


@check("filter/wrong-bitmap", "a bitmap of another length is refused", CLAUSE, needs=NEEDS)
async def wrong_bitmap(subject: PluginUnderTest) -> None:
    """The host means another generation's nodes."""
    host = await shown(subject)
    pod = subject.pods[0]
    status = (await host.ask("Filter", pod)).status.code
    call = host.ask("Filter", pod, candidates=scheduling_pb2.Candidates(bitmap=bytes(9)))
    if status == common_pb2.CODE_SUCCESS:
        await refused(call, grpc.StatusCode.INVALID_ARGUMENT, what="9 bytes of bitmap for a few nodes")
    else:
        call.close()
