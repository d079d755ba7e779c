"""The errors of a call to an HTTP extender.

ExtenderError              the call has failed; whether the extender is ignorable says what that means
├── NotAskedError          nothing was sent
├── UnansweredError        it is not known what the extender did: no answer, or none in time
├── StatusError            it answered with a status other than 200
└── ReplyError             it answered 200, with an error or with something that the protocol does not allow
"""

from berth.out_of_tree.plugin_text import bounded


class ExtenderError(Exception):
    """A call to an extender has failed; the text is bounded: extenders write parts of it."""

    def __init__(self, text: str) -> None:
        super().__init__(bounded(text))


class NotAskedError(ExtenderError):
    """The call was not sent: another process may hold the lease."""


class UnansweredError(ExtenderError):
    """The extender did not answer, or not in time."""


class StatusError(ExtenderError):
    """The extender answered with an HTTP status other than 200."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class ReplyError(ExtenderError):
    """The extender's reply says or shows that something is wrong."""
