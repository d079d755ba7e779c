"""Puts what was recorded to a plugin, call by call in the order in which they were sent, and compares.

    file --entries--> Player --steps, calls--> plugin
                        ^---------answers--------'  compared with those in the file

One call at a time, each against the generation that it was about and at the time at which it was made, so
that a replay is the same every time; what went on side by side is put one after the other.

Source: docs/record-and-replay.md.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import msgspec

from berth.config.out_of_tree.sidecars import PluginTls, SidecarSpec
from berth.out_of_tree.transport.rpc import RpcError
from berth.recordings.calls.reading import RecordingFile, read_recording
from berth.recordings.errors import UnusableRecordingError
from berth.replay.comparing import changes, failure
from berth.replay.errors import ReplayError
from berth.replay.guest import Guest, connected
from berth.replay.meaning import STATUS, AnswerPart, Meaning, hints_meaning, meaning_of
from berth.replay.replay_result import ReplayResult, Timing
from berth.replay.rows import by_bitmap, lists
from berth.replay.steps import Steps, request_of
from berth_plugin_proto import identity_pb2, recording_pb2, scheduling_pb2

_OUTSIDE = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.UNAVAILABLE,
    }
)
"""Failures that say nothing of what the plugin decides."""
_PUT = frozenset({"configure", "sync", "call", "placements", "hints"})
"""Entries that something of goes to the plugin."""
_FAILED = "failed when it was recorded"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class ReplayOptions(msgspec.Struct, frozen=True):
    """Where the plugin is, and how its answers are compared.

    `ignore` may hold scores, reasons and hints; `bind` repeats Bind as well, which acts on a cluster.
    """

    address: str
    tls: PluginTls | None = None
    ignore: frozenset[str] = frozenset()
    seconds: float = 10.0
    bind: bool = False


async def replay(recording: Path, options: ReplayOptions) -> ReplayResult:
    """What the plugin answers now to what was recorded.

    Raises: RecordingError where the file can't be used; ReplayError where the plugin can't be asked.
    """
    file = read_recording(recording)
    steps = Steps.of(file.entries)
    if not steps.transfers:
        raise UnusableRecordingError(
            f"{recording} ends before the state is whole: record more of it (--max-size)"
        )
    spec = SidecarSpec(file.header.plugin, options.address, tls=options.tls)
    async with connected(spec, steps, options.seconds) as guest:
        player = Player(file, guest, options)
        await player.play()
    if not player.outcome.compared:
        raise UnusableRecordingError(
            f"{recording} holds no call with an answer: record while pods are scheduled"
        )
    return player.outcome


class Player:
    """One replay."""

    def __init__(self, file: RecordingFile, guest: Guest, options: ReplayOptions) -> None:
        self.outcome = ReplayResult(file.header, options.address, warnings=list(file.warnings))
        self.outcome.version = guest.introduction.version
        self._entries = file.entries
        self._began_micros = file.header.began.ToMicroseconds()
        self._guest = guest
        self._options = options
        self._answers: Mapping[int, recording_pb2.RecordingEntry] = {
            entry.answer.id: entry for entry in file.entries if entry.HasField("answer")
        }
        self._offered: frozenset[str] = frozenset()
        self._greeted = False

    async def play(self) -> None:
        """Put everything to the plugin. Raises: ReplayError where that can't go on."""
        for entry in self._entries:
            if entry.WhichOneof("message") in _PUT:
                await self._guest.reach(self._began_micros + entry.offset.ToMicroseconds())
            match entry.WhichOneof("message"):
                case "handshake" if not self._greeted:
                    self._introduced(entry.handshake)
                case "configure":
                    await self._configure(entry.configure)
                case "sync":
                    await self._step(entry.sync)
                case "call" | "placements" as kind:
                    put = self._call(entry) if kind == "call" else self._placements(entry.placements)
                    if not await put:
                        self.outcome.warnings.append("the plugin went away: what follows was not put to it")
                        return
                case "hints":
                    await self._hints(entry.hints)

    def _introduced(self, was: identity_pb2.HandshakeResponse) -> None:
        now = self._guest.introduction
        self._greeted, self.outcome.recorded_version = True, was.version
        before, after = (_points(each.capabilities) for each in (was, now))
        self._offered = frozenset(subject.name for subject in after)
        if found := changes(before, after):
            self.outcome.differ("Handshake", "", 0, 0, found)

    async def _configure(self, request: identity_pb2.ConfigureRequest) -> None:
        errors = await self._guest.configure(request)
        if errors and not request.handshake_errors:
            text = f"refuses the recorded arguments of profile {request.profile}: {'; '.join(errors)}"
            raise ReplayError(f"{self._options.address}: the plugin {text}")

    async def _step(self, message: Any) -> None:
        generation = message.commit.generation or message.delta.generation
        try:
            await self._guest.advance(generation)
        except LookupError:
            return  # a call that needs that generation says so

    async def _call(self, entry: recording_pb2.RecordingEntry) -> bool:
        """Put a call to the plugin; False where it is gone."""
        field = entry.call.WhichOneof("call")
        name = "".join(part.capitalize() for part in str(field).split("_"))
        answer = self._answers.get(entry.call.id)
        if why := self._excuse(name, answer):
            self.outcome.left_out[why] += 1
            return True
        assert answer is not None, "excused"
        was = getattr(answer.answer, answer.answer.WhichOneof("answer") or "error")
        before = _seconds(answer.offset) - _seconds(entry.offset)
        return await self._put(name, getattr(entry.call, str(field)), was, before)

    async def _placements(self, placements: recording_pb2.RecordedPlacements) -> bool:
        """Put a call about a pod group to the plugin; False where it is gone."""
        name = _OF_GROUPS[placements.WhichOneof("request") or "generate"]
        answered = placements.WhichOneof("response")
        if why := self._unannounced(name) or ("" if answered else _FAILED):
            self.outcome.left_out[why] += 1
            return True
        was = getattr(placements, str(answered))
        return await self._put(name, request_of(placements), was, _seconds(placements.took))

    async def _put(self, name: str, request: Any, was: Any, before: float) -> bool:
        """Put a call to the plugin once it holds the call's state; False where it is gone."""
        head = request.call
        head.epoch = self._guest.epoch
        try:
            if not self._guest.brought_by(head):
                await self._guest.advance(head.generation)
        except LookupError:
            self.outcome.left_out["its state is not in the file"] += 1
            return True
        return await self._asked(name, request, was, before)

    def _excuse(self, name: str, answer: recording_pb2.RecordingEntry | None) -> str:
        """Why a call is not put to the plugin."""
        if answer is None:
            return "not answered when the recording ended"
        if name == "Bind" and not self._options.bind:
            return "Bind acts on the cluster"
        return self._unannounced(name)

    def _unannounced(self, name: str) -> str:
        """That the plugin serves the call no more; empty where it does."""
        return "" if _POINT.get(name, name) in self._offered else f"{name} is not announced any more"

    async def _asked(self, name: str, recorded: Any, was: Any, before: float) -> bool:
        """Ask, and compare with what was answered, which may be a CallError."""
        request = self._as_announced(recorded)
        started, error, response = time.perf_counter(), None, None
        try:
            response = await self._guest.ask(name, request)
        except RpcError as failed:
            error = failed
        now = time.perf_counter() - started
        if error is None:
            self._guest.carried(request.call)
        if isinstance(was, scheduling_pb2.CallError) and _CODES.get(was.code) in _OUTSIDE:
            self.outcome.left_out[_FAILED] += 1
        elif error is not None and error.reason == "GENERATION_GONE":
            self.outcome.left_out["it was about nodes that had moved since"] += 1
        else:
            self._compare(name, request, self._meanings((recorded, request), was, response, error))
            timing = self.outcome.timings.setdefault(name, Timing())
            timing.recorded.append(before)
            timing.now.append(now)
        return error is None or error.code is not grpc.StatusCode.UNAVAILABLE

    def _as_announced(self, request: Any) -> Any:
        """The question in a form that the plugin reads: a list of nodes only if it announces that it does.

        A bitmap is read by every plugin, so it stays one.
        """
        if not lists(request) or self._guest.introduction.capabilities.listed_candidates:
            return request
        return by_bitmap(request, self._guest.node_count(request.call))

    def _meanings(
        self,
        requests: tuple[Any, Any],
        was: Any,
        response: Any,
        error: RpcError | None,
    ) -> tuple[Meaning, Meaning] | None:
        """What both answers say, each to its own request; None where all is the same to the byte."""
        names = self._guest.rows.names
        then, now = requests
        failed = was if isinstance(was, scheduling_pb2.CallError) else None
        if error is None and failed is None:
            if response is None:
                return {STATUS: "answered"}, {STATUS: "breaks the protocol: sends what can't be read"}
            if then is now and _apart_from_generation(was) == _apart_from_generation(response):
                return None
            return meaning_of(then, was, names), meaning_of(now, response, names)
        before = {STATUS: _said(failed) if failed else "answered"}
        return before, {STATUS: "answered"} if error is None else failure(error)

    def _compare(self, name: str, request: Any, meanings: tuple[Meaning, Meaning] | None) -> None:
        self.outcome.compared += 1
        if meanings is None or not (found := changes(*meanings, self._options.ignore)):
            return
        pod = request.call.pod
        generation = request.call.generation
        self.outcome.differ(name, f"{pod.namespace}/{pod.name}", pod.attempt, generation, found)

    async def _hints(self, hints: recording_pb2.RecordedHints) -> None:
        if not hints.HasField("response"):
            self.outcome.left_out[_FAILED] += 1
            return
        if "QueueingHints" not in self._offered:
            self.outcome.left_out["QueueingHints is not announced any more"] += 1
            return
        started = time.perf_counter()
        before = hints_meaning(hints.request, hints.response)
        try:
            response = await self._guest.ask("QueueingHints", hints.request)
            after = hints_meaning(hints.request, response)
        except RpcError as error:
            before, after = {STATUS: "answered"}, failure(error)
        timing = self.outcome.timings.setdefault("QueueingHints", Timing())
        timing.now.append(time.perf_counter() - started)
        timing.recorded.append(_seconds(hints.took))
        self.outcome.compared += 1
        if found := changes(before, after, self._options.ignore):
            self.outcome.differ("QueueingHints", f"profile {hints.request.profile}", 0, 0, found)


_POINT = {
    "FilterScore": "Filter",
    "Unreserve": "Reserve",
    "GeneratePlacements": "PlacementGenerate",
    "ScorePlacements": "PlacementScore",
}
"""Calls that are announced under another's name."""
_OF_GROUPS = {
    "generate": "GeneratePlacements",
    "score": "ScorePlacements",
    "feasible": "PlacementFeasible",
    "post_filter": "PodGroupPostFilter",
}
"""Calls about pod groups by the field of RecordedPlacements."""


def _said(failed: scheduling_pb2.CallError) -> str:
    return f"{_CODES.get(failed.code, grpc.StatusCode.UNKNOWN).name}: {failed.message}"


def _points(capabilities: identity_pb2.Capabilities) -> Meaning:
    return {
        AnswerPart("extension point", _camel(identity_pb2.ExtensionPoint.Name(point))): "announced"
        for point in capabilities.extension_points
    }


def _camel(name: str) -> str:
    words = re.sub("^EXTENSION_POINT_", "", name).split("_")
    return "".join(word.capitalize() for word in words)


def _apart_from_generation(response: Any) -> Any:
    """A copy that says nothing of the generation at which it was given."""
    copy = type(response)()
    copy.CopyFrom(response)
    fields = copy.DESCRIPTOR.fields_by_name
    parts = [getattr(copy, name) for name in ("filter", "score") if name in fields and copy.HasField(name)]
    for part in parts or [copy]:
        if "generation" in part.DESCRIPTOR.fields_by_name:
            part.ClearField("generation")
    return copy


def _seconds(duration: Any) -> float:
    return float(duration.seconds + duration.nanos / 1e9)
