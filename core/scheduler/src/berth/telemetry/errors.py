"""What can go wrong while telemetry is set up; once it runs it only counts what it had to drop.

TelemetryError
├── SettingError      exit code 2: an OTEL_* variable or a flag has to be changed by the user
└── TraceFileError    exit code 2: a path has to be changed by the user
"""


class TelemetryError(Exception):
    """Anything this package raises on purpose."""


class SettingError(TelemetryError):
    """A variable or flag has a value that means nothing."""


class TraceFileError(TelemetryError):
    """A trace file can't be opened, read or understood."""
