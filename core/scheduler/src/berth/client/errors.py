"""What can go wrong between us and the API server, grouped by what the caller does next.

ClientError
├── RetryError                 try again after a pause
│   ├── NotSentError           nothing reached the server: any request may be repeated
│   │   └── HeldBackError      by the caller's own guard: repeat when that says yes again
│   ├── ThrottledError         429, refused unread: any request may be repeated, after the wait it names
│   └── AmbiguousError         it may have landed: repeat a read; after a write, look first
│       ├── CutError           the connection ended before the answer was complete
│       ├── DeadlineError      the answer did not come in time
│       └── ServerError        5xx
├── RelistError                forget the position and list again
│   ├── ExpiredError           410: the resource version or the continue token is too old
│   └── VersionTooLargeError   504: this server has not seen the resource version yet
├── ObjectError                give up on this object; the next event about it starts afresh
│   ├── NotFoundError          404
│   ├── ConflictError          409: another client wrote first, or the object was replaced
│   └── RejectedError          any other 4xx
└── FatalError                 leave the process
    ├── ConfigurationError     exit code 2: a file or flag has to be changed by the user
    └── LeaseLostError         exit code 1: another process may lead

AnsweredError, beside the tree, is the base of those that the server put into words.
"""


class ClientError(Exception):
    """Anything this package raises on purpose."""


class AnsweredError(ClientError):
    """The server answered; carries the HTTP status code and the words of its Status object.

    `causes` are the messages of the Status' `details.causes`.
    """

    causes: tuple[str, ...] = ()

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


def lacks_rights(error: Exception) -> bool:
    """Whether the server does not know the client (401), or does not allow it that (403)."""
    return isinstance(error, AnsweredError) and error.status in {401, 403}


class RetryError(ClientError):
    """Trying again after a pause may succeed."""


class NotSentError(RetryError):
    """Nothing reached the server."""


class HeldBackError(NotSentError):
    """The caller's guard said no at the last moment (the lease is not provably fresh)."""


class ThrottledError(AnsweredError, RetryError):
    """The server refused the request unread (429).

    Units: retry_after_seconds, what the server asked for, 30 at most, 0 if it named no time.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_seconds: float) -> None:
        super().__init__(status, reason, message)
        self.retry_after_seconds = retry_after_seconds


class AmbiguousError(RetryError):
    """A write may or may not have landed; only a read shows."""


class CutError(AmbiguousError):
    """The connection ended after the request was sent and before its answer was complete."""


class DeadlineError(AmbiguousError):
    """The request was sent, its answer did not come before the deadline."""


class ServerError(AnsweredError, AmbiguousError):
    """The server answered 5xx, which does not say whether a write landed."""


class RelistError(AnsweredError):
    """The position in the history of a resource is of no use any more."""


class ExpiredError(RelistError):
    """The resource version or continue token is older than what the server keeps (410)."""


class VersionTooLargeError(RelistError):
    """The server has not reached the wanted resource version (504, seen with etcd 3.4)."""


class ObjectError(AnsweredError):
    """The server refused this request for this object."""


class NotFoundError(ObjectError):
    """There is no such object (404)."""


class ConflictError(ObjectError):
    """The object changed, exists already, or is not the one that was meant (409)."""


class RejectedError(ObjectError):
    """The server turned the request down for another reason (4xx)."""


class FatalError(ClientError):
    """The process cannot go on."""


class ConfigurationError(FatalError):
    """A kubeconfig, flag or mounted credential is unusable: says where, what, and what to do."""

    def __init__(self, file: str, field: str, problem: str, remedy: str) -> None:
        super().__init__(": ".join(part for part in (file, field, f"{problem}; {remedy}") if part))
        self.file = file
        self.field = field
        self.problem = problem
        self.remedy = remedy


class LeaseLostError(FatalError):
    """This process can no longer prove that it leads."""
