"""The states of a recording: the transfer that it begins with, and the steps from generation to generation.

A step stands in the file once on the stream, or in the calls that carried it, or both.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from berth_plugin_proto import common_pb2, recording_pb2, scheduling_pb2, state_pb2


@dataclass(slots=True)
class Transfer:
    """A whole state: the messages that carry it, `generation` 0 until it is whole."""

    chunks: list[state_pb2.SyncRequest] = field(default_factory=list)
    generation: int = 0


@dataclass(slots=True)
class Steps:
    """Deltas by the generation that they start from, and transfers in the order of their generations."""

    deltas: dict[int, state_pb2.Delta] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Iterable[recording_pb2.RecordingEntry]) -> "Steps":
        """Those of a recording."""
        steps, opened = cls(), Transfer()
        for entry in entries:
            for delta in _carried(entry):
                steps.deltas[delta.base_generation] = delta
            if not entry.HasField("sync"):
                continue
            match entry.sync.WhichOneof("body"):
                case "begin":
                    opened = Transfer()
                case "chunk":
                    opened.chunks.append(entry.sync)
                case "commit":
                    opened.chunks.append(entry.sync)
                    opened.generation = entry.sync.commit.generation
                    steps.transfers.append(opened)
                case "delta":
                    steps.deltas[entry.sync.delta.base_generation] = entry.sync.delta
        return steps

    def between(self, held: int, wanted: int) -> Iterator[state_pb2.Delta | Transfer]:
        """What leads from one generation to another.

        Raises: LookupError where that is not in the recording.
        """
        while held < wanted:
            step: state_pb2.Delta | Transfer | None = self.deltas.get(held)
            if step is None or step.generation > wanted:
                step = next((each for each in self.transfers if held < each.generation <= wanted), None)
            if step is None:
                raise LookupError(f"no step leads from generation {held} to {wanted}")
            yield step
            held = step.generation


def request_of(placements: recording_pb2.RecordedPlacements) -> Any:
    """The request in it."""
    return getattr(placements, placements.WhichOneof("request") or "generate")


def _carried(entry: recording_pb2.RecordingEntry) -> Iterable[state_pb2.Delta]:
    """The steps that came with a call."""
    match entry.WhichOneof("message"):
        case "call":
            return head_of(entry.call).deltas
        case "placements":
            deltas: Iterable[state_pb2.Delta] = request_of(entry.placements).call.deltas
            return deltas
        case _:
            return ()


def head_of(call: scheduling_pb2.ConverseRequest) -> common_pb2.Call:
    """The head of the request in it."""
    head: common_pb2.Call = getattr(call, call.WhichOneof("call") or "filter").call
    return head
