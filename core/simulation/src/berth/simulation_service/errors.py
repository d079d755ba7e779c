"""What a call ends with besides an answer; the server makes a gRPC status of it.

QueryError
├── WrongRequestError    INVALID_ARGUMENT: the caller mends the request
├── NoForkError          NOT_FOUND: the caller makes a new fork
├── NotSyncedError       UNAVAILABLE: the cluster was not seen yet; the caller tries again
├── BoundError           RESOURCE_EXHAUSTED: the caller asks for less, or later
└── CutOffError          DEADLINE_EXCEEDED: the time for the answer is over
"""

from typing import ClassVar

import grpc


class QueryError(Exception):
    """No answer; the text is one line for the caller."""

    code: ClassVar[grpc.StatusCode] = grpc.StatusCode.INTERNAL


class WrongRequestError(QueryError):
    """A field of the request is wrong."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class NoForkError(QueryError):
    """The client has no such fork."""

    code = grpc.StatusCode.NOT_FOUND


class NotSyncedError(QueryError):
    """The cluster was not read in full yet."""

    code = grpc.StatusCode.UNAVAILABLE


class BoundError(QueryError):
    """A bound is reached."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class CutOffError(QueryError):
    """The caller, or the time that an answer may take, is gone."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class AddressError(Exception):
    """The address can't be served; the text is one line for the user."""
