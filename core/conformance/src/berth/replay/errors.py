"""Why nothing could be replayed, besides what is wrong with the recording (berth.recordings.errors)."""


class ReplayError(Exception):
    """The plugin can't be asked, or does not take what was recorded; the text says why, and what to do."""
