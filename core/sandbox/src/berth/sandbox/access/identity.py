"""Bearer tokens: one for the administrator, and those that were made for service accounts.

Tokens are kept in memory and do not expire; they are no JWTs.
Source: pkg/serviceaccount and staging/src/k8s.io/apiserver/pkg/authentication (v1.36).
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from berth.sandbox.attributes import SandboxUser

AUTHENTICATED: Final = "system:authenticated"
ADMINISTRATOR: Final = SandboxUser("sandbox", ("system:masters", AUTHENTICATED))
ANONYMOUS: Final = SandboxUser("system:anonymous", ("system:unauthenticated",))


def service_account(namespace: str, name: str, uid: str = "") -> SandboxUser:
    """Give the user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return SandboxUser(f"system:serviceaccount:{namespace}:{name}", groups, uid)


class Tokens:
    """Who is behind which token."""

    def __init__(self) -> None:
        self._users: dict[str, SandboxUser] = {}
        self._audiences: dict[str, tuple[str, ...]] = {}
        self.administrator = self.issue(ADMINISTRATOR)

    def issue(self, user: SandboxUser, audiences: Sequence[str] = ()) -> str:
        """Make a token for the user, good for these audiences; for the API itself where none is named."""
        token = secrets.token_urlsafe(24)
        self._users[token] = user
        if audiences:
            self._audiences[token] = tuple(audiences)
        return token

    def user(self, token: str, audiences: Sequence[str] = ()) -> SandboxUser | None:
        """Give the account of the token, None if it is not known or not for any of these audiences."""
        meant = self._audiences.get(token, ())
        known = not set(meant).isdisjoint(audiences) if audiences else not meant
        return self._users.get(token) if known else None

    def authenticate(self, headers: Mapping[str, str]) -> SandboxUser | None:
        """Give who sent the request; without a token that is the anonymous user, with a wrong one none.

        The administrator may act as another user by impersonation headers.
        """
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if not token:
            return ANONYMOUS
        user = self.user(token.strip()) if scheme.lower() == "bearer" else None
        name = headers.get("impersonate-user", "")
        if user is ADMINISTRATOR and name:
            group = headers.get("impersonate-group", "")
            return SandboxUser(name, (*([group] if group else []), AUTHENTICATED))
        return user
