"""Candidates that are listed by index: the answers are a bitmap's, with an entry for each index."""

import asyncio

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_plugin_proto import common_pb2, placement_pb2, scheduling_pb2
from berth_sdk import SKIP, Normalization, Plugin, Reason, Scores, Verdicts, plugin, scheduling
from berth_sdk.capabilities import capabilities
from berth_sdk.packing import pack_bits, pack_indices, unpack_indices, unpack_scores, unpack_verdicts
from berth_sdk.session import Session
from berth_sdk.testing import Cluster, make_node, make_pod, running
from berth_sdk.waiting import begin

MAX_NODES = 20
NODES = [make_node(f"n{i}") for i in range(MAX_NODES)]
REASONS = (Reason("first"), Reason("second"))
WIDTHS = {"uint8": (0, 255), "int32": (-300, 1 << 20), "int64": (-(1 << 40), 1 << 40)}
POD = make_pod("p")


def number(node):
    return int(node.name[1:])


class Drawn(Plugin):
    """Answers what was drawn for each node."""

    name = "drawn"
    reasons = REASONS
    normalization = Normalization.MIN_MAX

    def __init__(self, codes, points, *, skips=False):
        self.codes, self.points, self.skips = np.array(codes, np.uint8), np.array(points, np.int64), skips
        self.looked = []

    def pre_filter(self, _pod):
        return SKIP if self.skips else None


class ByNode(Drawn):
    def filter(self, _pod, node):
        self.looked.append(number(node))
        code = self.codes[number(node)]
        return REASONS[code - 1] if code else None

    def score(self, _pod, node):
        return int(self.points[number(node)])


class Vectors(Drawn):
    def filter_nodes(self, _pod, nodes):
        self.looked.append(None if nodes.candidates is None else nodes.candidates.tolist())
        assert nodes.candidates is None or np.flatnonzero(nodes.candidates).tolist() == [
            i for i, _ in nodes.asked()
        ]
        return self.codes

    def score_nodes(self, _pod, nodes):
        self.looked.append(None if nodes.candidates is None else nodes.candidates.tolist())
        return self.points


class Masks(Drawn):
    def filter_nodes(self, _pod, _nodes):
        return self.codes == 0

    def score_nodes(self, _pod, _nodes):
        return None


class OwnTables(Drawn):
    async def filter_nodes(self, _pod, _nodes):
        await asyncio.sleep(0)
        return Verdicts(self.codes, REASONS)

    async def score_nodes(self, _pod, _nodes):
        await asyncio.sleep(0)
        return Scores(self.points, Normalization.MAX)


class FiltersAlone(Drawn):
    filter = ByNode.filter


class ScoresAlone(Drawn):
    score = ByNode.score


KINDS = [ByNode, Vectors, Masks, OwnTables, FiltersAlone, ScoresAlone]


@st.composite
def questions(draw):
    """A plugin's kind with what it answers, and the nodes asked about."""
    count = draw(st.integers(0, MAX_NODES))
    low, high = WIDTHS[draw(st.sampled_from(sorted(WIDTHS)))]
    codes = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    points = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    asked = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    kind, skips = draw(st.sampled_from(KINDS)), draw(st.booleans())
    return lambda: kind(codes, points, skips=skips), np.array(asked, np.bool_)


def session_of(made, count):
    """A session that is configured and holds so many nodes."""
    session, cluster = Session(made), Cluster()
    session.profiles.add("default-scheduler")
    for node in NODES[:count]:
        cluster.put_node(node)
    session.mirror.epoch, session.mirror.generation = "e", 1
    session.mirror.follow(cluster.step())
    return session


def ask(function, request_type, made, count, candidates):
    """The answer of one of the functions behind Filter, Score and FilterScore."""
    ref = common_pb2.PodRef(uid="u", namespace="default", name="p", attempt=1, object=b"{}")
    call = common_pb2.Call(epoch="e", generation=2, profile="default-scheduler", pod=ref)

    async def answer():
        given = begin(function(session_of(made, count), request_type(call=call, candidates=candidates)))
        return await given if isinstance(given, asyncio.Task) else given

    return asyncio.run(answer())


def as_bitmap(asked):
    return scheduling_pb2.Candidates(bitmap=pack_bits(asked))


def as_list(asked):
    return scheduling_pb2.Candidates(indices=pack_indices(np.flatnonzero(asked)))


THREE = scheduling_pb2.Candidates(indices=pack_indices(np.array([3, 4, 17])))


def verdicts_on(response, rows, count):
    """Status, and what is said of each of these rows."""
    if not response.HasField("verdicts"):
        return response.status
    table = [each.text for each in response.verdicts.reasons]
    codes = unpack_verdicts(response.verdicts, (), count).codes[rows]
    return response.status, [table[code - 1] if code else None for code in codes]


def scores_on(response, rows, count):
    """Status, form, normalization and the scores of these rows."""
    if not response.HasField("scores"):
        return response.status
    scores = response.scores
    form = scores.WhichOneof("values")
    return response.status, form, scores.normalization, unpack_scores(scores, count)[rows].tolist()


@given(questions())
def test_a_list_is_answered_as_a_bitmap(question):
    """Filter and Score say the same of the same nodes, whatever form the author chose."""
    make, asked = question
    rows, count = np.flatnonzero(asked), len(asked)
    every = np.arange(len(rows))
    for function, request, said in (
        (scheduling.filter_pod, scheduling_pb2.FilterRequest, verdicts_on),
        (scheduling.score_pod, scheduling_pb2.ScoreRequest, scores_on),
    ):
        expected = ask(function, request, make(), count, as_bitmap(asked))
        found = ask(function, request, make(), count, as_list(asked))

        assert said(expected, rows, count) == said(found, every, len(rows))


@given(questions())
def test_both_in_one_trip(question):
    """FilterScore too; the author is shown the same, and counted is the same."""
    make, asked = question
    rows, count = np.flatnonzero(asked), len(asked)
    every = np.arange(len(rows))
    request = scheduling_pb2.FilterScoreRequest
    by_bitmap, by_list = make(), make()
    expected = ask(scheduling.filter_score, request, by_bitmap, count, as_bitmap(asked))
    found = ask(scheduling.filter_score, request, by_list, count, as_list(asked))

    assert verdicts_on(expected.filter, rows, count) == verdicts_on(found.filter, every, len(rows))
    assert expected.HasField("score") == found.HasField("score")
    assert scores_on(expected.score, rows, count) == scores_on(found.score, every, len(rows))
    assert by_bitmap.looked == by_list.looked


def test_only_listed_nodes_are_visited():
    """The vectors are as long as the list, and a function is asked about its nodes alone."""
    made = ByNode([1] * MAX_NODES, [0] * MAX_NODES)
    answer = ask(scheduling.filter_pod, scheduling_pb2.FilterRequest, made, MAX_NODES, THREE)

    assert b"\1\1\1" == answer.verdicts.each
    assert [3, 4, 17] == made.looked


def test_scores_of_what_passed():
    """FilterScore's scores have an entry for each index; that of a node that was turned down is 0."""
    made = ByNode([i == 4 for i in range(MAX_NODES)], [7] * MAX_NODES)
    answer = ask(scheduling.filter_score, scheduling_pb2.FilterScoreRequest, made, MAX_NODES, THREE)

    assert b"\0\1\0" == answer.filter.verdicts.each
    assert b"\7\0\7" == answer.score.scores.uint8


def test_no_vector_over_all_nodes_is_made(monkeypatch):
    """A function that is asked node by node costs what the listed nodes cost."""
    made_lengths = []
    zeros = np.zeros

    def noted(shape, *rest):
        made_lengths.append(shape)
        return zeros(shape, *rest)

    monkeypatch.setattr(np, "zeros", noted)
    made = ByNode([0] * MAX_NODES, [0] * MAX_NODES)
    ask(scheduling.filter_score, scheduling_pb2.FilterScoreRequest, made, MAX_NODES, THREE)

    assert {3} == set(made_lengths)


def test_an_empty_list_asks_about_no_node():
    """It is no question about all nodes."""
    nothing = scheduling_pb2.Candidates(indices=b"")
    made = ByNode([1] * MAX_NODES, [0] * MAX_NODES)
    answer = ask(scheduling.filter_score, scheduling_pb2.FilterScoreRequest, made, MAX_NODES, nothing)

    assert ("all", 0) == (answer.filter.verdicts.WhichOneof("codes"), answer.filter.verdicts.all)
    assert not answer.HasField("score")
    assert [] == made.looked


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        pytest.param(b"\0\0\0", "4 bytes", id="cut off"),
        pytest.param(pack_indices(np.array([2, 1])), "ascends", id="descending"),
        pytest.param(pack_indices(np.array([1, 1])), "ascends", id="twice"),
        pytest.param(pack_indices(np.array([4, 5])), "index 5 is listed, of 5", id="no such node"),
    ],
)
async def test_lists_that_are_refused(listed, complaint):
    """What can't be a list of nodes is a mistake of the host."""
    async with running(plugin("x", filter=lambda *_: None), *NODES[:5]) as host:
        request = scheduling_pb2.FilterRequest(
            call=host.call(POD), candidates=scheduling_pb2.Candidates(indices=listed)
        )
        with pytest.raises(grpc.aio.AioRpcError, match=complaint) as refused:
            await host.scheduling.Filter(request)

    assert grpc.StatusCode.INVALID_ARGUMENT is refused.value.code()


def test_indices_are_little_endian():
    """Four bytes each, unsigned."""
    assert b"\1\0\0\0\0\1\0\0" == pack_indices(np.array([1, 256]))
    assert [1, 256] == unpack_indices(b"\1\0\0\0\0\1\0\0", 257).tolist()


@pytest.mark.parametrize(
    ("scores", "complaint"),
    [
        pytest.param(np.zeros(3, np.int64), "expected 5 integers", id="wrong length"),
        pytest.param(np.zeros(5), "expected 5 integers, got float64", id="wrong type"),
        pytest.param(np.full(5, 101), "0 to 100 is the range", id="out of range"),
    ],
)
async def test_vectors_that_are_not_sent(scores, complaint):
    """What the author's function answers is checked before entries are picked from it."""
    async with running(plugin("x", score_nodes=lambda *_: scores), *NODES[:5]) as host:
        with pytest.raises(AssertionError, match=complaint):
            await host.score(POD, ["n1"], listed=True)


@pytest.mark.parametrize("kind", [ByNode, Vectors])
async def test_the_testing_host_lists(kind):
    """It gives the names back that it asked about."""
    async with running(kind([0, 1, 0, 2, 0], [1, 2, 3, 4, 5]), *NODES[:5]) as host:
        assert {"n1": REASONS[0]} == (await host.filter(POD, ["n1", "n2"], listed=True)).nodes
        assert {"n3": 4, "n4": 5} == await host.score(POD, ["n3", "n4"], listed=True)
        rejections, scores = await host.filter_score(POD, ["n2", "n3"], listed=True)
        everything = await host.filter(POD, listed=True)

    assert ({"n3": REASONS[1]}, {"n2": 3}) == (rejections.nodes, scores)
    assert {"n1": REASONS[0], "n3": REASONS[1]} == everything.nodes


async def test_placements_among_listed_candidates():
    """A set of nodes has a bit for each node, however the candidates were named."""

    def halves(_group, _pod, nodes):
        return {"all": np.ones(len(nodes), np.bool_)}

    async with running(plugin("x", generate_placements=halves), *NODES[:5]) as host:
        request = placement_pb2.GeneratePlacementsRequest(
            call=host.call(POD), candidates=scheduling_pb2.Candidates(indices=pack_indices(np.array([1, 3])))
        )
        answer = await host.placement.GeneratePlacements(request)

    assert [b"\x0a"] == [each.bitmap for each in answer.placements]


@pytest.mark.parametrize("method", ["pre_filter", "filter", "filter_nodes", "score", "score_nodes"])
def test_announced(method):
    """A plugin that filters or scores reads lists."""
    assert capabilities(plugin("x", **{method: lambda *_: None})).listed_candidates


def test_not_announced():
    """One that is not asked about nodes need not."""
    assert not capabilities(plugin("x", reserve=lambda *_: None)).listed_candidates
