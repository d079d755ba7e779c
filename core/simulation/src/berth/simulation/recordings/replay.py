"""Replays a scheduler's recording: checks that decisions are the same, and compares other configurations.

    recording --> Playing, recorded configuration --outputs--> equal to the recorded ones, span by span
                     |                                    |
                     |                                    +--> not: played again up to there, for the scores
                     +--before each cycle--> SecondOpinion of another configuration

Called by: `berth simulate replay`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.config.errors import ConfigError
from berth.config.loading import LoadedConfig
from berth.recordings.core.calls import BIND
from berth.recordings.core.header import TapeHeader
from berth.recordings.core.spans import CALL, CYCLE, DECIDED, EVENT, MICROSECONDS
from berth.simulation.errors import InputError
from berth.simulation.plugins.plugin_settings import check_in_process
from berth.simulation.recordings.playing import DivergedError, Output, PlayedCore, at_once
from berth.simulation.recordings.second_opinion import SecondOpinion
from berth.simulation.recordings.tape_file import ReadLine, open_tape
from berth.simulation.running.outcome import API_VERSION
from berth.simulation.running.scores import NodeScore, node_scores

MAX_SHOWN: Final = 10


class ReplayDifference(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A decision, or another configuration's, that differs from the recorded one."""

    span: int
    at: str
    pod: str
    recorded: str
    now: str
    recorded_node: str = ""
    node: str = ""
    recorded_scores: dict[str, NodeScore] = {}
    """What both nodes score with the recorded configuration at that moment."""
    scores: dict[str, NodeScore] = {}
    """The same with the other configuration, or with this version of Berth."""


class Replay(msgspec.Struct, rename="camel", kw_only=True):
    """The result of a replay."""

    api_version: str = API_VERSION
    kind: str = "Replay"
    file: str
    version: str
    began: str
    spans: int = 0
    events: int = 0
    attempts: int = 0
    writes: int = 0
    broken: bool = False
    """Whether it ended early: with the recorded configuration something came out otherwise."""
    compared: int = 0
    """Decisions about which another configuration was asked."""
    different: int = 0
    """How many of them it would have taken otherwise; 1 where the replay ended early."""
    differences: list[ReplayDifference] = []
    """The first of them."""
    warnings: list[str] = []


def replay(path: Path, other: LoadedConfig | None = None, *, shown: int = MAX_SHOWN) -> Replay:
    """Replay a recording with its own configuration, and compare another one at each decision.

    `shown` is how many differences are kept with their scores.
    Raises: InputError, PluginsError.
    """
    with open_tape(path) as reading:
        recorded = _recorded(path, reading.header)
        for loaded in (recorded, other or recorded):
            check_in_process(loaded)
        found = Replay(file=str(path), version=reading.header.version, began=reading.header.began.isoformat())
        playing = PlayedCore(reading.header, recorded)
        asking = None if other is None else _Asking(playing, other, _decisions(path), shown)
        try:
            for span in reading.spans():
                if asking is not None and span.i == CYCLE:
                    asking.ask(found, span)
                if not _same(found, playing, span):
                    break
        finally:
            playing.close()
        found.warnings = reading.warnings
    return _explained(path, recorded, found) if found.broken else found


def _recorded(path: Path, header: TapeHeader) -> LoadedConfig:
    try:
        return header.loaded()
    except ConfigError as error:
        raise InputError(f"{path}: the recorded configuration: {error}; replay it with its version") from None


# The same again.


def _same(found: Replay, playing: PlayedCore, span: ReadLine) -> bool:
    """Play a span; returns False where an output differs."""
    problem = None
    try:
        playing.play(span)
    except DivergedError as error:
        problem = error
    found.spans += 1
    found.events += span.i == EVENT
    found.attempts += span.i == CYCLE
    found.writes += sum(output[0] == CALL for output in span.o)
    if problem is None and playing.outputs == span.o:
        return True
    found.broken, found.different = True, found.different + 1
    found.differences = [_difference(found.spans - 1, playing, span, problem)]
    return False


def _difference(
    number: int, playing: PlayedCore, span: ReadLine, problem: DivergedError | None
) -> ReplayDifference:
    pairs = zip_longest(span.o, playing.outputs)
    was, now = next(((was, now) for was, now in pairs if was != now), (None, None))
    popped = playing.popped()
    pod = _pod_of(was) or _pod_of(now) or (popped.key if popped else "")
    return ReplayDifference(
        span=number,
        at=_time(playing.time),
        pod=pod,
        recorded=_said(was) if problem is None else problem.recorded,
        now=_said(now) if problem is None else problem.now,
        recorded_node=_node_of(span.o, pod),
        node=_node_of(playing.outputs, pod),
    )


def _pod_of(output: Output | None) -> str:
    if output is None:
        return ""
    named = output[3] if output[0] == CALL else output[1]
    return str(named).partition(" ")[0] if isinstance(named, str) else ""


def _node_of(outputs: Sequence[Output], pod: str) -> str:
    for output in outputs:
        if output[0] == CALL and output[2] == BIND and _pod_of(output) == pod:
            return str(output[4])
        if output[0] == DECIDED and output[1] == pod:
            return str(output[3])
    return ""


def _said(output: Output | None) -> str:
    """The text of an output."""
    if output is None:
        return "nothing"
    if output[0] == DECIDED:
        _, _, _, node, plugins, nominated = output
        nomination = f", nominated to {nominated}" if nominated else ""
        return f"placed on {node}" if node else f"no node ({', '.join(plugins) or 'no plugin'}){nomination}"
    _, _, method, *arguments = output
    return f"bound to {arguments[1]}" if method == BIND else f"{method} {_text(arguments)}"


def _text(arguments: list[Any]) -> str:
    return msgspec.json.encode(arguments).decode()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _explained(path: Path, recorded: LoadedConfig, found: Replay) -> Replay:
    """The replay with what both nodes scored when the cycle of its difference began."""
    (different,) = found.differences
    names = [name for name in (different.recorded_node, different.node) if name]
    if different.recorded_node != different.node:
        scores = _scores_before(path, recorded, different, names)
        found.differences = [msgspec.structs.replace(different, scores=scores)]
    return found


def _scores_before(
    path: Path, recorded: LoadedConfig, different: ReplayDifference, names: Sequence[str]
) -> dict[str, NodeScore]:
    with open_tape(path) as reading:
        playing, scores = PlayedCore(reading.header, recorded), {}
        try:
            for number, span in enumerate(reading.spans()):
                popped = playing.popped()
                if span.i == CYCLE and popped is not None and popped.key == different.pod:
                    scores = at_once(node_scores(playing.core, popped, names))
                if number == different.span:
                    break
                playing.play(span)
        finally:
            playing.close()
        return scores


# Another configuration.


def _decisions(path: Path) -> dict[int, Output]:
    """The decision of the cycle that began with each span; cycles never overlap."""
    found, cycle = {}, 0
    with open_tape(path) as reading:
        for number, span in enumerate(reading.spans()):
            cycle = number if span.i == CYCLE else cycle
            for output in span.o:
                if output[0] == DECIDED:
                    found[cycle] = output
    return found


class _Asking:
    """Compares another configuration at each decision."""

    def __init__(
        self, playing: PlayedCore, other: LoadedConfig, decisions: dict[int, Output], shown: int
    ) -> None:
        self._playing = playing
        self._opinions = SecondOpinion(playing.core, other)
        self._decisions = decisions
        self._shown = shown

    def ask(self, found: Replay, span: ReadLine) -> None:
        """Compare the decision of the cycle that begins with the span."""
        pod, decision = self._playing.popped(), self._decisions.get(found.spans)
        # A cycle that broke off has neither a node nor a plugin that rejected the pod.
        if pod is None or decision is None or not (decision[3] or decision[4]):
            return
        # Pods of a group are decided on together.
        if pod.spec.scheduling_group is not None:
            return
        node = str(decision[3])
        opinion = self._opinions.of(pod, node)
        found.compared += 1
        if opinion.agrees(node):
            return
        found.different += 1
        if len(found.differences) < self._shown:
            other = opinion.best[0] if opinion.best else ""
            found.differences = [
                *found.differences,
                ReplayDifference(
                    span=found.spans,
                    at=_time(span.n[0] / MICROSECONDS if span.n else self._playing.time),
                    pod=pod.key,
                    recorded=_said(decision),
                    now=f"placed on {other}" if other else "no node",
                    recorded_node=node,
                    node=other,
                    recorded_scores=dict(opinion.recorded_scores),
                    scores=dict(opinion.scores),
                ),
            ]
