"""The user behind a request, as a TokenReview or a front proxy names it."""

from contextvars import ContextVar

import msgspec

AUTHENTICATED = "system:authenticated"
USER = ContextVar("USER", default="")
"""The name of the user that the request is made for which is being answered; "" where that is not known."""


class User(msgspec.Struct, frozen=True):
    """Name, UID, groups and what else is known of a user; a SubjectAccessReview repeats all of it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}
