"""What can be wrong with a recording; the text says what to do.

RecordingError
├── UnusableRecordingError   a file that is no recording, or of another format
└── RecordingEndedError      a file that cannot be written, a kind that cannot be read
"""


class RecordingError(Exception):
    """A recording cannot be used."""


class UnusableRecordingError(RecordingError):
    """The file can't be read as a recording."""


class RecordingEndedError(RecordingError):
    """Nothing more is recorded."""
