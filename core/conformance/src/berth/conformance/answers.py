"""Answers in a form that can be compared: what is decided for each node asked about, however packed."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from berth.conformance.check import expect
from berth.conformance.errors import UnmetError
from berth.conformance.host_state import HostState
from berth.conformance.samples import Document
from berth.framework.status import Status
from berth.out_of_tree.errors import PluginFailedError, ProtocolError
from berth.out_of_tree.packing import scores_of, status_of, verdicts_of
from berth.snapshot.columns.growing import Rows
from berth_plugin_proto import common_pb2, scheduling_pb2

Comparable = tuple[Any, ...]
SUCCESS = common_pb2.CODE_SUCCESS
PLUGIN = "under test"


def as_rows(rows: Iterable[int] | None, n: int) -> Rows:
    """Row numbers, of all n where none are named."""
    return np.arange(n) if rows is None else np.array(list(rows), dtype=np.intp)


def verdicts_in(response: Any, n: int, rows: Iterable[int] | None = None) -> Comparable:
    """The status, and why each node is turned down ("" where it passes).

    Raises: UnmetError where the plugin failed, or its answer is not about n nodes.
    """
    asked = as_rows(rows, n)
    with _about(asked, n):
        status = _no_error(response)
        if response.status.code != SUCCESS:
            return status.code.name, status.reasons, ()
        codes, table = verdicts_of(PLUGIN, response.verdicts, n, asked)
    texts = ("", *(f"{each.code.name}: {each.message}" for each in table))
    return "SUCCESS", (), tuple(texts[code] for code in codes[asked].tolist())


def scores_in(response: Any, n: int, rows: Iterable[int] | None = None) -> Comparable:
    """The status, and each node's score.

    Raises: UnmetError where the plugin failed, or its answer is not about n nodes.
    """
    asked = as_rows(rows, n)
    with _about(asked, n):
        status = _no_error(response)
        if response.status.code != SUCCESS:
            return status.code.name, status.reasons, ()
        scores = scores_of(PLUGIN, response.scores, n)[asked]
    return "SUCCESS", response.scores.normalization, tuple(scores.tolist())


def _no_error(response: Any) -> Status:
    """The status. Raises: PluginFailedError with the plugin's own text where it is ERROR."""
    status = status_of(PLUGIN, response.status)
    if response.status.code == common_pb2.CODE_ERROR:
        raise PluginFailedError(PLUGIN, f"ERROR: {'; '.join(status.reasons)}")
    return status


@contextmanager
def _about(asked: Rows, n: int) -> Iterator[None]:
    """Name the question to which an answer is wrong: vectors are often as long as what was asked about."""
    try:
        yield
    except (PluginFailedError, ProtocolError) as error:
        question = "all nodes" if asked.size == n else f"{asked.size} of {n} nodes"
        wanted = f"an entry for each of the {n} nodes, asked about or not"
        raise UnmetError(
            f"an answer about {question}, with {wanted}", str(error).removeprefix(f"plugin {PLUGIN}: ")
        ) from None


def _candidates(host: HostState, rows: Iterable[int] | None) -> scheduling_pb2.Candidates | None:
    return None if rows is None else host.candidates(rows)


async def filtered(
    host: HostState, pod: Document, rows: list[int] | None = None, **fields: Any
) -> Comparable:
    """Filter's answer."""
    answer = await host.ask("Filter", pod, candidates=_candidates(host, rows), **fields)
    return verdicts_in(answer, len(host.nodes), rows)


async def scored(host: HostState, pod: Document, rows: list[int] | None = None, **fields: Any) -> Comparable:
    """Score's answer; where the plugin wants to see feasible nodes only, about those."""
    answer = await host.ask("Score", pod, candidates=_candidates(host, rows), **fields)
    return scores_in(answer, len(host.nodes), rows)


def passing(answer: Comparable, n: int) -> list[int]:
    """The rows that Filter let pass."""
    status, _, texts = answer
    if status == "SKIP":
        return list(range(n))
    return [row for row, text in enumerate(texts) if not text]


async def decided(host: HostState, pod: Document, rows: list[int] | None = None) -> Comparable:
    """Everything that the plugin says of the nodes, by Filter and by Score."""
    verdict: Comparable = ()
    feasible = rows
    if host.subject.offers("FILTER"):
        verdict = await filtered(host, pod, rows)
        if host.subject.capabilities.score_needs_feasible:
            asked = range(len(host.nodes)) if rows is None else rows
            feasible = [row for row in passing(await filtered(host, pod), len(host.nodes)) if row in asked]
    if not host.subject.offers("SCORE") or verdict[:1] not in ((), ("SUCCESS",), ("SKIP",)):
        return verdict
    return *verdict, *await scored(host, pod, feasible)


async def picture(host: HostState, pods: Iterable[Document] | None = None) -> list[Comparable]:
    """What the plugin decides for each sample pod, in the order of nodes' names, whatever their indices."""
    order = sorted(range(len(host.nodes)), key=lambda row: host.names[row])
    found = []
    for pod in host.subject.pods if pods is None else pods:
        answer = await decided(host, pod)
        found.append(tuple(_in_order(part, order) for part in answer))
    return found


def _in_order(part: Any, order: list[int]) -> Any:
    whole = isinstance(part, tuple) and len(part) == len(order)
    return tuple(part[row] for row in order) if whole else part


def same(expected: Any, came: Any, what: str) -> None:
    """Raises: UnmetError unless both are equal; shows where they first differ."""
    pairs = zip(expected, came, strict=False) if isinstance(expected, (list, tuple)) else ()
    first = next(((a, b) for a, b in pairs if a != b), (expected, came))
    expect(expected == came, f"{what}: {first[0]}", first[1])
