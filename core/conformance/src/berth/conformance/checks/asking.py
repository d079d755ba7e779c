"""What was asked before changes no answer."""

from collections.abc import Awaitable, Callable

from berth.conformance.answers import Comparable, filtered, passing, same, scored
from berth.conformance.check import check
from berth.conformance.host_state import HostState, shown
from berth.conformance.samples import Document
from berth.conformance.subject import PluginUnderTest

CLAUSE = "Scheduling calls"
ROUNDS = 3

Ask = Callable[[HostState, Document], Awaitable[Comparable]]


async def _scores(host: HostState, pod: Document) -> Comparable:
    """The scores of all nodes; of those alone that pass where the plugin wants to see no others."""
    if not (host.subject.capabilities.score_needs_feasible and host.subject.offers("FILTER")):
        return await scored(host, pod)
    rows = passing(await filtered(host, pod), len(host.nodes))
    return await scored(host, pod, rows) if rows else ()


def _anew(pod: Document, number: int) -> Document:
    """The same pod with a UID of its own, as its controller makes it again."""
    return {**pod, "metadata": {**pod["metadata"], "uid": f"{pod['metadata']['uid']}-{number}"}}


async def _in_any_order(subject: PluginUnderTest, ask: Ask, what: str) -> None:
    """Raises: UnmetError where pods have other answers in the second round, asked about from the last on."""
    host = await shown(subject)
    found = {pod["metadata"]["name"]: await ask(host, _anew(pod, 0)) for pod in subject.pods}
    for number in range(1, ROUNDS):
        for pod in reversed(subject.pods):
            name = pod["metadata"]["name"]
            wanted = f"{what} for {name} as before other pods were asked about: answers depend on no order"
            same(found[name], await ask(host, _anew(pod, number)), wanted)


@check(
    "filter/order",
    "the order of questions changes no verdict",
    CLAUSE,
    needs=("FILTER", "nodes"),
    after=("filter/deterministic",),
)
async def filter_order(subject: PluginUnderTest) -> None:
    """Pods are asked about in any order, again, and ahead of their turn; most questions place no pod."""
    await _in_any_order(subject, filtered, "the verdicts")


@check(
    "score/order",
    "the order of questions changes no score",
    CLAUSE,
    needs=("SCORE", "nodes"),
    after=("score/deterministic",),
)
async def score_order(subject: PluginUnderTest) -> None:
    """As for Filter."""
    await _in_any_order(subject, _scores, "the scores")
