"""Recordings of plugins, and their replay: for `berth plugin record|replay` and for a plugin's own tests."""

from berth.replay.errors import RecordingError, ReplayError
from berth.replay.playing import Options, replay
from berth.replay.recording_file import RecordingFile, read_recording
from berth.replay.replay_result import Change, Difference, ReplayResult, as_json
from berth.replay.text import as_text

__all__ = [
    "Change",
    "Difference",
    "Options",
    "RecordingError",
    "RecordingFile",
    "ReplayError",
    "ReplayResult",
    "as_json",
    "as_text",
    "read_recording",
    "replay",
]
