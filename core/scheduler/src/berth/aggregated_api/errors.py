"""What keeps an object from being explained, by what the client does next."""

from collections.abc import Sequence


class NoSuchObjectError(Exception):
    """Give up: there is no such object, or no scheduler here has to do with it.

    `names` are those that there are, where these are few.
    """

    def __init__(self, message: str, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.names = tuple(names)


class TooManyQuestionsError(Exception):
    """Try again after so many seconds: the user has asked for more than their share."""

    def __init__(self, message: str, retry_seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class UnavailableError(Exception):
    """Try again: the scheduler that knows the object can't be asked now."""
