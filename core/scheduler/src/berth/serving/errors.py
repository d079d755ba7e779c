"""What keeps a process from serving, and what it answers when it can't answer now."""


class StartError(Exception):
    """An input of the process is unusable; the text names it and the remedy."""


class LoopBusyError(Exception):
    """The scheduling loop did not answer in time; the request may be repeated."""


class TooManyReviewsError(Exception):
    """More unknown clients came than the API server is asked about; the request may be repeated."""
