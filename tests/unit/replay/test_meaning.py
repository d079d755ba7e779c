"""What answers mean, however they are packed."""

import numpy as np
import pytest

from berth.replay.comparing import changes
from berth.replay.meaning import hints_meaning, meaning_of
from berth.replay.rows import NodeRows
from berth_plugin_proto import common_pb2, queueing_pb2, scheduling_pb2, state_pb2

NAMES = ["a", "b", "c"]
SUCCESS = common_pb2.Status(code=common_pb2.CODE_SUCCESS)
SKIP = common_pb2.Status(code=common_pb2.CODE_SKIP)
FILTER = scheduling_pb2.FilterRequest()
NONE = scheduling_pb2.NORMALIZATION_NONE
MIN_MAX = scheduling_pb2.NORMALIZATION_MIN_MAX


def turned_down(*texts):
    return common_pb2.Status(code=common_pb2.CODE_UNSCHEDULABLE, reasons=texts)


def verdicts(codes, *texts):
    """A Filter response with that byte for each node, or one number for all."""
    table = [common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text=text) for text in texts]
    packed = {"all": codes} if isinstance(codes, int) else {"each": bytes(codes)}
    return scheduling_pb2.FilterResponse(
        status=SUCCESS, verdicts=scheduling_pb2.Verdicts(reasons=table, **packed)
    )


def scores(*values, how=NONE, width="<i8", form="int64"):
    packed = {form: np.array(values, width).tobytes()}
    return scheduling_pb2.ScoreResponse(
        status=SUCCESS, scores=scheduling_pb2.Scores(normalization=how, **packed)
    )


def differing(request, was, now, **options):
    """The subjects that differ."""
    found = changes(meaning_of(request, was, NAMES), meaning_of(request, now, NAMES), **options)
    return [f"{each.kind} {each.name}".strip() for each in found]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(verdicts([1, 2, 0], "x", "y"), verdicts([2, 1, 0], "y", "x"), id="order of reasons"),
        pytest.param(verdicts([1, 1, 1], "x"), verdicts(1, "x"), id="one code for all"),
        pytest.param(verdicts([0, 0, 0], "unused"), verdicts(0), id="a reason that no node has"),
        pytest.param(
            verdicts(0), scheduling_pb2.FilterResponse(status=SKIP), id="nothing to say and all pass"
        ),
        pytest.param(
            verdicts(1, "x"),
            scheduling_pb2.FilterResponse(status=turned_down("x")),
            id="the pod or all nodes",
        ),
    ],
)
def test_same_verdicts(one, other):
    """Two ways to say one thing are the same answer."""
    assert [] == differing(FILTER, one, other)


def test_other_verdicts():
    """A node is named where it passes no more, or where the reason is another."""
    assert ["node b", "node c"] == differing(FILTER, verdicts([1, 1, 0], "x"), verdicts([1, 2, 1], "x", "y"))


def test_reasons_ignored():
    """Where reasons do not matter, a node has to pass or not."""
    was, now = verdicts([1, 1, 0], "x"), verdicts([1, 2, 1], "x", "y")

    assert ["node c"] == differing(FILTER, was, now, ignore=["reasons"])


def test_candidates():
    """Nodes that were not asked about may hold anything."""
    request = scheduling_pb2.FilterRequest(candidates=scheduling_pb2.Candidates(bitmap=b"\x01"))

    assert [] == differing(request, verdicts([0, 0, 0]), verdicts([0, 1, 1], "x"))


def asking(**candidates):
    """Requests of Filter, Score and both about these candidates."""
    asked = scheduling_pb2.Candidates(**candidates)
    return [
        make(candidates=asked)
        for make in (
            scheduling_pb2.FilterRequest,
            scheduling_pb2.ScoreRequest,
            scheduling_pb2.FilterScoreRequest,
        )
    ]


def answering(codes, points):
    """Their answers, with an entry for each node or for each that is listed."""
    found, scored = verdicts(codes, "x"), scores(*points)
    return found, scored, scheduling_pb2.FilterScoreResponse(filter=found, score=scored)


def test_listed_candidates():
    """A list has an entry for each index, and means what the bitmap of the same nodes means."""
    listed = zip(asking(indices=b"\0\0\0\0\2\0\0\0"), answering([0, 1], [5, 7]), strict=True)
    by_bitmap = zip(asking(bitmap=b"\5"), answering([0, 9, 1], [5, 9, 7]), strict=True)

    assert [meaning_of(*each, NAMES) for each in listed] == [meaning_of(*each, NAMES) for each in by_bitmap]


@pytest.mark.parametrize(
    ("indices", "wrong"),
    [(b"\1\0\0\0", "2 verdicts for 1 nodes"), (b"\0\0\0\0\3\0\0\0", "index 3 of 3 nodes is listed")],
    ids=["more entries", "no such node"],
)
def test_broken_answer_to_a_list(indices, wrong):
    """More entries than indices, or an index of no node, breaks the protocol."""
    request = scheduling_pb2.FilterRequest(candidates=scheduling_pb2.Candidates(indices=indices))

    assert [f"breaks the protocol: {wrong}"] == list(meaning_of(request, verdicts([0, 0]), NAMES).values())


def test_broken_answer():
    """An answer that breaks the protocol is one difference, which says how."""
    (change,) = changes(meaning_of(FILTER, verdicts(0), NAMES), meaning_of(FILTER, verdicts([0, 0]), NAMES))

    assert ("SUCCESS", "breaks the protocol: 2 verdicts for 3 nodes") == (change.was, change.now)


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        pytest.param(scores(1, 2, 3), scores(1, 2, 3, width="u1", form="uint8"), [], id="another width"),
        pytest.param(
            scores(0, 0, 0), scheduling_pb2.ScoreResponse(status=SKIP), [], id="no opinion is zero for all"
        ),
        pytest.param(scores(1, 2, 3), scores(1, 2, 4), ["score c"], id="another score"),
        pytest.param(
            scores(1, 2, 3), scores(1, 2, 3, how=MIN_MAX), ["normalization"], id="another normalization"
        ),
    ],
)
def test_scores(one, other, differ):
    """Scores are compared as numbers, with what the host does to them."""
    assert differ == differing(scheduling_pb2.ScoreRequest(), one, other)
    assert [] == differing(scheduling_pb2.ScoreRequest(), one, other, ignore=["scores"])


def test_scores_of_nodes_that_pass():
    """Of FilterScore a score counts where the node passes before and now."""
    request = scheduling_pb2.FilterScoreRequest()
    was = scheduling_pb2.FilterScoreResponse(filter=verdicts([0, 1, 0], "x"), score=scores(1, 2, 3))
    now = scheduling_pb2.FilterScoreResponse(filter=verdicts([0, 1, 1], "x"), score=scores(1, 9, 9))
    none = scheduling_pb2.FilterScoreResponse(filter=verdicts(1, "x"))

    assert ["node c"] == differing(request, was, now)
    assert ["node a", "node c"] == differing(request, was, none)


def test_overlays():
    """Overlays are named by node and place."""
    request = scheduling_pb2.FilterOverlaysRequest(
        overlays=[scheduling_pb2.Overlay(node_index=2), scheduling_pb2.Overlay(node_index=0)]
    )
    was, now = verdicts([0, 0]), verdicts([0, 1], "x")

    assert ["node a (overlay 1)"] == differing(request, was, now)


@pytest.mark.parametrize(
    ("request_", "was", "now", "differ"),
    [
        (
            scheduling_pb2.ReserveRequest(),
            scheduling_pb2.ReserveResponse(status=SUCCESS, metadata_patch=b'{"a": 1, "b": 2}'),
            scheduling_pb2.ReserveResponse(status=SUCCESS, metadata_patch=b'{"b":2,"a":1}'),
            [],
        ),
        (
            scheduling_pb2.PreBindRequest(),
            scheduling_pb2.PreBindResponse(status=SUCCESS, metadata_patch=b"{}"),
            scheduling_pb2.PreBindResponse(status=SUCCESS),
            ["metadata patch"],
        ),
        (
            scheduling_pb2.PermitRequest(),
            scheduling_pb2.PermitResponse(status=common_pb2.Status(code=common_pb2.CODE_WAIT)),
            scheduling_pb2.PermitResponse(status=SUCCESS),
            ["status"],
        ),
        (
            scheduling_pb2.PostFilterRequest(),
            scheduling_pb2.PostFilterResponse(
                status=SUCCESS, nominated_node_name="a", victim_uids=["x", "y"]
            ),
            scheduling_pb2.PostFilterResponse(
                status=SUCCESS, nominated_node_name="b", victim_uids=["y", "x"]
            ),
            ["nominated node"],
        ),
        (
            scheduling_pb2.PreEnqueueRequest(),
            scheduling_pb2.PreEnqueueResponse(status=turned_down("x")),
            scheduling_pb2.PreEnqueueResponse(status=turned_down("y")),
            ["status"],
        ),
        (scheduling_pb2.UnreserveRequest(), scheduling_pb2.UnreserveResponse(), None, []),
    ],
    ids=["key order", "patch", "permit", "post filter", "gate", "nothing to say"],
)
def test_other_calls(request_, was, now, differ):
    """Answers about a pod are compared field by field, sets without order and JSON as what it holds."""
    assert differ == differing(request_, was, now)


def hints(*rows, unknown=None):
    return queueing_pb2.QueueingHintsResponse(
        hints=[queueing_pb2.Hint(pods=bytes([row])) for row in rows], unknown_pods=unknown
    )


def test_hints():
    """Hints are compared event by pod, whether given row by row or as a matrix, where the pod is known."""
    request = queueing_pb2.QueueingHintsRequest(
        events=[queueing_pb2.ClusterEvent(resource="Node")] * 2,
        pods=[common_pb2.PodRef(uid="p"), common_pb2.PodRef(uid="q")],
    )

    def compared(was, now):
        return [each.name for each in changes(hints_meaning(request, was), hints_meaning(request, now))]

    assert [] == compared(hints(1, 2), queueing_pb2.QueueingHintsResponse(matrix=b"\x01\x02"))
    assert ["event 1 (Node), pod q"] == compared(hints(1, 2), hints(1, 0))
    assert [] == compared(hints(1, 2), hints(1, 0, unknown=b"\x02"))
    assert [""] == compared(hints(1, 2), hints(1))


def test_rows():
    """Node names follow the protocol's indices: the last row takes a removed one's place."""

    def upsert(index, name):
        return state_pb2.Change(node_upsert=state_pb2.NodeUpsert(index=index, name=name))

    rows = NodeRows()
    rows.apply([upsert(0, "a"), upsert(1, "b"), upsert(2, "c"), upsert(1, "b")])
    assert ["a", "b", "c"] == rows.names
    rows.apply([state_pb2.Change(node_remove=state_pb2.NodeRemove(index=0, name="a"))])
    assert ["c", "b"] == rows.names
    rows.apply([state_pb2.Change(node_remove=state_pb2.NodeRemove(index=1, name="b"))])
    assert ["c"] == rows.names
