"""The user behind a request, as a TokenReview or a front proxy names it."""

import msgspec

AUTHENTICATED = "system:authenticated"


class User(msgspec.Struct, frozen=True):
    """Name, UID, groups and what else is known of a user; a SubjectAccessReview repeats all of it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}
