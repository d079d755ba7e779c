"""Why nothing could be replayed.

ReplayError           the plugin is not there, is another one, or does not take what was recorded
└── RecordingError    the file is no recording, or not one that can be used
"""


class ReplayError(Exception):
    """There is nothing to compare; the text says why, and what to do."""


class UnusableRecordingError(ReplayError):
    """The file can't be used."""
