"""The basics: configured and synced, the plugin answers Filter and Score in a form that can be compared.

All other checks build upon these, and say nothing of a plugin that fails one of them.
"""

from berth.conformance.answers import filtered, same, scored
from berth.conformance.check import check, expect
from berth.conformance.host_state import Stream, shown
from berth.conformance.subject import PluginUnderTest, brief
from berth_plugin_proto import common_pb2

STATUSES = frozenset(common_pb2.Code.values()) - {common_pb2.CODE_UNSPECIFIED, common_pb2.CODE_WAIT}

UNCHANGED = "nothing happened since the last question, and no state may be kept by"


@check("configure/accepted", "the profile's arguments are accepted", "Order of calls", basic=True)
async def accepted(subject: PluginUnderTest) -> None:
    """Nothing else can be tried with arguments that are refused."""
    errors = await subject.configure()
    expect(not errors, "no errors (give other arguments with --args)", errors)


@check("sync/held-first", "the plugin says first what it holds", "State", basic=True)
async def held_first(subject: PluginUnderTest) -> None:
    """Nothing and 0, or an epoch and its generation."""
    held = (await Stream(subject).opened()).held
    expect(bool(held.epoch) == (held.generation > 0), "both epoch and generation, or neither", brief(held))


@check("sync/transfer", "a full transfer is acknowledged", "State", basic=True)
async def transfer(subject: PluginUnderTest) -> None:
    """From the first Ack on calls are answered."""
    await shown(subject)


@check("sync/delta", "a delta is acknowledged", "State", basic=True)
async def delta(subject: PluginUnderTest) -> None:
    """An empty one too."""
    await (await shown(subject)).step()


@check(
    "filter/answer",
    "Filter is answered in a form that the protocol allows",
    "Vectors",
    needs=("FILTER",),
    basic=True,
)
async def filter_answer(subject: PluginUnderTest) -> None:
    """A verdict a node; codes have a reason; reasons have a text and an unschedulable code."""
    host = await shown(subject)
    for pod in subject.pods:
        await filtered(host, pod)


@check(
    "filter/status",
    "Filter's status is one that a filter can have",
    "Scheduling calls",
    needs=("FILTER",),
    basic=True,
)
async def filter_status(subject: PluginUnderTest) -> None:
    """Only Permit makes pods wait."""
    host = await shown(subject)
    for pod in subject.pods:
        code = (await host.ask("Filter", pod)).status.code
        expect(code in STATUSES, "any status but WAIT", common_pb2.Code.Name(code))


@check(
    "filter/verdicts",
    "verdicts are there exactly when the status is SUCCESS",
    "Scheduling calls",
    needs=("FILTER",),
    basic=True,
)
async def filter_verdicts(subject: PluginUnderTest) -> None:
    """Otherwise they contradict the status."""
    host = await shown(subject)
    for pod in subject.pods:
        response = await host.ask("Filter", pod)
        wanted = response.status.code == common_pb2.CODE_SUCCESS
        expect(response.HasField("verdicts") == wanted, f"verdicts: {wanted}", brief(response))


@check(
    "filter/deterministic",
    "the same question has the same answer",
    "Equal pods",
    needs=("FILTER",),
    basic=True,
)
async def filter_deterministic(subject: PluginUnderTest) -> None:
    """Nothing happened between the two."""
    host = await shown(subject)
    for pod in subject.pods:
        first = await filtered(host, pod)
        same(first, await filtered(host, pod), f"the same answer: {UNCHANGED} Filter")


@check(
    "score/answer",
    "Score is answered in a form that the protocol allows",
    "Vectors",
    needs=("SCORE",),
    basic=True,
)
async def score_answer(subject: PluginUnderTest) -> None:
    """A number a node, little-endian, in one of the widths."""
    host = await shown(subject)
    for pod in subject.pods:
        await scored(host, pod)


@check(
    "score/status",
    "Score's status is SUCCESS, SKIP or ERROR",
    "Scheduling calls",
    needs=("SCORE",),
    basic=True,
)
async def score_status(subject: PluginUnderTest) -> None:
    """Scores turn no pod down."""
    host = await shown(subject)
    allowed = (common_pb2.CODE_SUCCESS, common_pb2.CODE_SKIP, common_pb2.CODE_ERROR)
    for pod in subject.pods:
        response = await host.ask("Score", pod)
        expect(
            response.status.code in allowed,
            "SUCCESS, SKIP or ERROR",
            common_pb2.Code.Name(response.status.code),
        )
        wanted = response.status.code == common_pb2.CODE_SUCCESS
        expect(response.HasField("scores") == wanted, f"scores: {wanted}", brief(response))


@check(
    "score/normalization", "scores say how they are to be normalized", "Vectors", needs=("SCORE",), basic=True
)
async def normalization(subject: PluginUnderTest) -> None:
    """Unspecified is a protocol error."""
    host = await shown(subject)
    for pod in subject.pods:
        response = await host.ask("Score", pod)
        if response.status.code == common_pb2.CODE_SUCCESS:
            expect(
                response.scores.normalization in range(1, 5), "a normalization", response.scores.normalization
            )


@check(
    "score/deterministic", "the same question has the same scores", "Equal pods", needs=("SCORE",), basic=True
)
async def score_deterministic(subject: PluginUnderTest) -> None:
    """Nothing happened between the two."""
    host = await shown(subject)
    for pod in subject.pods:
        first = await scored(host, pod)
        same(first, await scored(host, pod), f"the same scores: {UNCHANGED} Score")
