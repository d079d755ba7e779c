"""Score and FilterScore."""

from berth.conformance.answers import decided, filtered, passing, same, scored, scores_in, verdicts_in
from berth.conformance.check import check, expect
from berth.conformance.host_state import shown
from berth.conformance.subject import PluginUnderTest, brief, skip
from berth.out_of_tree.packing import normalized, scores_of
from berth_plugin_proto import common_pb2, scheduling_pb2

CLAUSE = "Vectors"
NEEDS = ("SCORE",)


def _rows(subject: PluginUnderTest, n: int) -> list[int] | None:
    """All nodes, named one by one where the plugin wants that."""
    return list(range(n)) if subject.capabilities.score_needs_feasible else None


@check(
    "score/generation",
    "the answer says which generation it is about",
    "Scheduling calls",
    needs=NEEDS,
)
async def generation(subject: PluginUnderTest) -> None:
    """As for Filter."""
    host = await shown(subject)
    came = (await host.ask("Score", subject.pods[0])).generation
    expect(came == host.generation, f"generation {host.generation}", came)


@check(
    "score/range",
    "scores can be normalized as the answer says",
    CLAUSE,
    needs=NEEDS,
)
async def in_range(subject: PluginUnderTest) -> None:
    """0 to 100 without, not negative where the highest becomes 100."""
    host = await shown(subject)
    for pod in subject.pods:
        response = await host.ask("Score", pod)
        if response.status.code == common_pb2.CODE_SUCCESS:
            raw = scores_of("under test", response.scores, len(host.nodes))
            normalized("under test", raw, response.scores.normalization)


@check(
    "score/candidates",
    "nodes that are not asked about change no score",
    CLAUSE,
    needs=(*NEEDS, "nodes"),
)
async def candidates(subject: PluginUnderTest) -> None:
    """Where the plugin asks to see exactly the feasible nodes, other scores are allowed, not other forms."""
    host = await shown(subject)
    rows = list(range(0, len(host.nodes), 2))
    if subject.capabilities.score_needs_feasible:
        for pod in subject.pods:
            await decided(host, pod, rows)
        return
    for pod in subject.pods:
        status, how, scores = await scored(host, pod)
        wanted = (status, how, tuple(scores[row] for row in rows) if scores else ())
        same(wanted, await scored(host, pod, rows), "the scores as of all nodes")


@check(
    "filter-score/answer",
    "FilterScore is answered in a form that the protocol allows",
    CLAUSE,
    needs=("FILTER", "SCORE"),
)
async def filter_score(subject: PluginUnderTest) -> None:
    """Both answers are read as those of Filter and Score."""
    if subject.capabilities.score_needs_feasible:
        raise skip("score_needs_feasible")
    host = await shown(subject)
    for pod in subject.pods:
        response = await host.ask("FilterScore", pod)
        verdicts_in(response.filter, len(host.nodes))
        if response.HasField("score"):
            scores_in(response.score, len(host.nodes))


@check(
    "filter-score/filter",
    "FilterScore filters as Filter does",
    "Scheduling calls",
    needs=("FILTER", "SCORE"),
    after=("filter-score/answer",),
)
async def filters_alike(subject: PluginUnderTest) -> None:
    """It is both calls in one round trip."""
    if subject.capabilities.score_needs_feasible:
        raise skip("score_needs_feasible")
    host = await shown(subject)
    for pod in subject.pods:
        response = await host.ask("FilterScore", pod)
        same(
            await filtered(host, pod),
            verdicts_in(response.filter, len(host.nodes)),
            "the verdicts of Filter",
        )


@check(
    "filter-score/score",
    "FilterScore scores as Score does",
    "Scheduling calls",
    needs=("FILTER", "SCORE"),
    after=(
        "score/candidates",
        "filter-score/answer",
        "filter-score/filter",
    ),
)
async def scores_alike(subject: PluginUnderTest) -> None:
    """Of nodes that the plugin's own filter let pass."""
    if subject.capabilities.score_needs_feasible:
        raise skip("score_needs_feasible")
    host = await shown(subject)
    n = len(host.nodes)
    for pod in subject.pods:
        response = await host.ask("FilterScore", pod)
        rows = passing(verdicts_in(response.filter, n), n)
        if rows:
            expect(response.HasField("score"), "scores, since nodes passed", brief(response))
            same(await scored(host, pod, rows), scores_in(response.score, n, rows), "the scores of Score")


@check(
    "filter-score/none-left",
    "FilterScore is answered where nothing is asked about",
    "Scheduling calls",
    needs=("FILTER", "SCORE", "nodes"),
    after=("filter-score/answer",),
)
async def none_left(subject: PluginUnderTest) -> None:
    """The scores may be absent then; the verdicts are not."""
    if subject.capabilities.score_needs_feasible:
        raise skip("score_needs_feasible")
    host = await shown(subject)
    nothing = scheduling_pb2.Candidates(bitmap=bytes(-(-len(host.nodes) // 8)))
    response = await host.ask("FilterScore", subject.pods[0], candidates=nothing)
    verdicts_in(response.filter, len(host.nodes), [])
