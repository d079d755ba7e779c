"""The door to the API: who is there, and whether they may come in.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/{authentication,authorization}.go (v1.36).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from berth.sandbox.access.escalation import BINDINGS, ROLES, escalation
from berth.sandbox.access.identity import ADMINISTRATOR, Tokens
from berth.sandbox.access.rbac import Rbac
from berth.sandbox.attributes import RequestAttributes, SandboxUser
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.store import Json


class RequestAccess(Protocol):
    """What the API asks before it answers."""

    def user(self, headers: Mapping[str, str]) -> SandboxUser:
        """Give who sends a request. Raises: ApiError when the token is not known."""

    def by_token(self, token: str, audiences: Sequence[str] = ()) -> SandboxUser | None:
        """Give whose token that is, if it is one for these audiences."""

    def allows(self, user: SandboxUser, asked: RequestAttributes) -> bool:
        """Say whether the user may."""

    def check(self, user: SandboxUser, asked: RequestAttributes) -> None:
        """Let pass. Raises: ApiError when the user may not."""

    def check_grant(
        self, user: SandboxUser, resource: ServedResource, namespace: str, document: Json
    ) -> None:
        """Let a role or binding pass. Raises: ApiError when it gives away more than the user has."""

    def rules(self, user: SandboxUser, namespace: str) -> list[Json]:
        """Give the rules that hold for a user."""

    def issue(self, user: SandboxUser, audiences: Sequence[str] = ()) -> str:
        """Make a token for these audiences, for the API where none is named."""


class _Everybody:
    """Every client is the administrator."""

    def user(self, headers: Mapping[str, str]) -> SandboxUser:
        """Give the administrator."""
        del headers
        return ADMINISTRATOR

    def by_token(self, token: str, audiences: Sequence[str] = ()) -> SandboxUser | None:
        """Give the administrator."""
        del token, audiences
        return ADMINISTRATOR

    def allows(self, user: SandboxUser, asked: RequestAttributes) -> bool:
        """Allow."""
        del user, asked
        return True

    def check(self, user: SandboxUser, asked: RequestAttributes) -> None:
        """Let pass."""

    def check_grant(
        self, user: SandboxUser, resource: ServedResource, namespace: str, document: Json
    ) -> None:
        """Let pass."""

    def rules(self, user: SandboxUser, namespace: str) -> list[Json]:
        """Give the one rule that allows everything."""
        del user, namespace
        return [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]

    def issue(self, user: SandboxUser, audiences: Sequence[str] = ()) -> str:
        """Make a token that says nothing."""
        del audiences
        return f"sandbox-token-for-{user.name}"


EVERYBODY: RequestAccess = _Everybody()


class AccessGate:
    """Access by tokens and the RBAC objects; `denied` is called for every refusal."""

    def __init__(
        self, tokens: Tokens, rbac: Rbac, denied: Callable[[SandboxUser, RequestAttributes], None]
    ) -> None:
        self._tokens = tokens
        self._rbac = rbac
        self._denied = denied

    def user(self, headers: Mapping[str, str]) -> SandboxUser:
        """Give who sends a request. Raises: ApiError when the token is not known."""
        user = self._tokens.authenticate(headers)
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return user

    def by_token(self, token: str, audiences: Sequence[str] = ()) -> SandboxUser | None:
        """Give whose token that is, if it is one for these audiences."""
        return self._tokens.user(token, audiences)

    def allows(self, user: SandboxUser, asked: RequestAttributes) -> bool:
        """Say whether the user may."""
        return self._rbac.allows(user, asked)

    def check(self, user: SandboxUser, asked: RequestAttributes) -> None:
        """Let pass. Raises: ApiError when the user may not."""
        if self.allows(user, asked):
            return
        self._denied(user, asked)
        why = f'User "{user.name}" cannot {asked}'
        if asked.path:
            raise ApiError(403, "Forbidden", f"forbidden: {why}", {})
        plural = asked.resource.partition("/")[0]
        what = f"{plural}.{asked.group}" if asked.group else plural
        named = f'{what} "{asked.name}"' if asked.name else what
        details = {"name": asked.name, "group": asked.group, "kind": plural}
        kept = {key: value for key, value in details.items() if value}
        raise ApiError(403, "Forbidden", f"{named} is forbidden: {why}", kept)

    def check_grant(
        self, user: SandboxUser, resource: ServedResource, namespace: str, document: Json
    ) -> None:
        """Let a role or binding pass. Raises: ApiError when it gives away more than the user has."""
        if resource.group != "rbac.authorization.k8s.io" or resource.plural not in (*ROLES, *BINDINGS):
            return
        problem = escalation(self._rbac, user, resource.plural, namespace, document)
        if problem:
            name = document.get("metadata", {}).get("name", "")
            raise ApiError.forbidden(resource.plural, resource.group, name, problem)

    def rules(self, user: SandboxUser, namespace: str) -> list[Json]:
        """Give the rules that hold for a user."""
        return list(self._rbac.rules(user, namespace))

    def issue(self, user: SandboxUser, audiences: Sequence[str] = ()) -> str:
        """Make a token for these audiences, for the API where none is named."""
        return self._tokens.issue(user, audiences)
