"""Reading a recording's file, as far as it is whole.

Source: proto/berth/plugin/v1/recording.proto.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from google.protobuf.message import DecodeError

from berth.recordings.calls.frames import RecordingFrameError, RecordingFrames
from berth.recordings.calls.recording import FORMAT
from berth.recordings.errors import UnusableRecordingError
from berth.recordings.formats import EndReason, ended_early, format_problem
from berth_plugin_proto import recording_pb2

BLOCK_BYTES = 1 << 20


class RecordingFile(msgspec.Struct):
    """What a file holds; `warnings` say what it lacks."""

    header: recording_pb2.RecordingHeader
    entries: list[recording_pb2.RecordingEntry]
    warnings: list[str] = msgspec.field(default_factory=list)


def read_recording(path: Path) -> RecordingFile:
    """Everything up to the file's last whole entry.

    Raises: RecordingError where it is no recording, or of a later format.
    """
    warnings: list[str] = []
    entries = list(_entries(path, warnings))
    first = entries.pop(0) if entries else recording_pb2.RecordingEntry()
    if not first.HasField("header") or not first.header.format:
        raise UnusableRecordingError(
            f"{path} is no recording of a plugin: make one with `berth plugin record`"
        )
    readable = range(FORMAT + 1)
    if problem := format_problem(path, first.header.format, readable, first.header.host_version):
        raise UnusableRecordingError(problem)
    if entries and entries[-1].HasField("end"):
        warnings += _said_at_the_end(entries.pop().end)
    elif not warnings:
        warnings.append(f"{path} ends at byte {path.stat().st_size} without its last entry: it was cut off")
    return RecordingFile(first.header, entries, warnings)


def _entries(path: Path, warnings: list[str]) -> Iterator[recording_pb2.RecordingEntry]:
    """The entries one by one; what is wrong with the rest of the file goes to the warnings."""
    frames, at, size = RecordingFrames(), 0, path.stat().st_size
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                for data in frames.feed(block):
                    yield recording_pb2.RecordingEntry.FromString(data)
                    at = frames.offset
    except (DecodeError, RecordingFrameError):
        warnings.append(f"{path} can't be read from byte {at} of {size} on: what stands before is used")
        return
    except OSError as error:
        raise UnusableRecordingError(f"{path}: {error.strerror}") from error
    if frames.incomplete:
        warnings.append(f"{path} is cut off in the entry at byte {at} of {size}: what stands before is used")


def _said_at_the_end(end: recording_pb2.RecordingEnd) -> Iterator[str]:
    match end.reason:
        case recording_pb2.RECORDING_END_REASON_COMPLETE:
            return
        case recording_pb2.RECORDING_END_REASON_SIZE:
            yield f"{ended_early(EndReason.SIZE)} (--max-size)"
        case recording_pb2.RECORDING_END_REASON_BEHIND:
            yield ended_early(EndReason.BEHIND)
        case recording_pb2.RECORDING_END_REASON_PLUGIN_GONE:
            yield "the recording ended early: the plugin was detached or replaced"
        case recording_pb2.RECORDING_END_REASON_STOPPED:
            yield "the recording was stopped"
        case reason:
            yield f"the recording ended for reason {reason}, which is not known here"
