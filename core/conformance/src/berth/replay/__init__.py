"""Recordings of plugins, and their replay: for `berth plugin record|replay` and for a plugin's own tests."""

from berth.recordings.calls.reading import RecordingFile, read_recording
from berth.recordings.errors import RecordingError, UnusableRecordingError
from berth.replay.errors import ReplayError
from berth.replay.playing import ReplayOptions, replay
from berth.replay.replay_result import AnswerChange, CallDifference, ReplayResult, as_json
from berth.replay.text import as_text

__all__ = [
    "AnswerChange",
    "CallDifference",
    "RecordingError",
    "RecordingFile",
    "ReplayError",
    "ReplayOptions",
    "ReplayResult",
    "UnusableRecordingError",
    "as_json",
    "as_text",
    "read_recording",
    "replay",
]
