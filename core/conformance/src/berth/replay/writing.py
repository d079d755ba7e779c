"""Writing a recording's file while it comes in: whole entries only, so that whatever is there can be read."""

from collections.abc import Callable

from google.protobuf.message import DecodeError

from berth.recordings.calls.frames import RecordingFrameError, RecordingFrames, framed
from berth.recordings.calls.recording import STOPPED
from berth.recordings.errors import UnusableRecordingError
from berth_plugin_proto import recording_pb2

_PREFIX = "RECORDING_END_REASON_"


class RecordingWriter:
    """Takes what comes in pieces; `write` is given whole entries."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.ended = False
        """Whether the last entry is written."""
        self._write = write
        self._frames = RecordingFrames()
        self._calls = self._size = 0
        self._end = recording_pb2.RecordingEnd()

    def take(self, block: bytes) -> None:
        """The next piece.

        Raises: RecordingError where it is none of a recording.
        """
        try:
            for data in self._frames.feed(block):
                self._put(recording_pb2.RecordingEntry.FromString(data))
        except (DecodeError, RecordingFrameError) as error:
            raise UnusableRecordingError(f"what came is no recording: {error}") from error

    def stop(self) -> None:
        """End the file where it is."""
        if not self.ended:
            self._put(recording_pb2.RecordingEntry(end=recording_pb2.RecordingEnd(reason=STOPPED)))

    def _put(self, entry: recording_pb2.RecordingEntry) -> None:
        frame = framed(entry)
        self._write(frame)
        self._size += len(frame)
        self._calls += entry.HasField("call") or entry.HasField("hints")
        if entry.HasField("end"):
            self.ended, self._end = True, entry.end

    @property
    def summary(self) -> str:
        """What is written, in a line."""
        why = recording_pb2.RecordingEndReason.Name(self._end.reason).removeprefix(_PREFIX).lower()
        ended = why.replace("_", " ") if self.ended else "cut off"
        attempts = f", {self._end.attempts} attempts ended" if self._end.attempts else ""
        return f"{self._calls} calls{attempts}, {self._size} bytes: {ended}"
