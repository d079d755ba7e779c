"""What the API server answers when it declines, as Status objects with upstream's words.

ApiError
├── the client corrects its request: bad_request, invalid, unsupported_media_type, not_acceptable,
│                                    method_not_allowed
├── the client looks again: not_found, already_exists, conflict, forbidden, too_many_requests
└── the client lists again: expired, too_large_resource_version

SandboxError is for the person who starts the sandbox: one line, no traceback.

Source: staging/src/k8s.io/apimachinery/pkg/api/errors and pkg/util/validation/field (v1.36).
"""

from typing import Any, Self

import msgspec


class SandboxError(Exception):
    """The sandbox cannot start or load what it was given; the text is one clear line."""


class Cause(msgspec.Struct, frozen=True):
    """One field that is wrong: upstream's cause reason, its text, and the field's path."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        """Give the line that goes into the summary."""
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> Cause:
    """Say that a field has to be there."""
    return Cause("FieldValueRequired", "Required value" + (f": {detail}" if detail else ""), field)


def invalid_value(field: str, value: Any, detail: str) -> Cause:
    """Say that a field's value is wrong, with the value as Go prints it."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def not_supported(field: str, value: Any, allowed: tuple[str, ...]) -> Cause:
    """Say that a value is none of those allowed."""
    listed = ", ".join(f'"{item}"' for item in sorted(allowed))
    return Cause(
        "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field
    )


def duplicate(field: str, value: Any) -> Cause:
    """Say that a list which is keyed holds this key twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def forbidden_field(field: str, detail: str) -> Cause:
    """Say that a field may not be set or changed here."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def shown(value: Any) -> str:
    """Print a value as the API server does inside a message."""
    return msgspec.json.encode(value).decode()


def qualified(name: str, group: str) -> str:
    """Name a resource or kind together with its group."""
    return f"{name}.{group}" if group else name


class ApiError(Exception):
    """A declined request: carries the HTTP status and the Status object to send."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> dict[str, Any]:
        """Give the Status object."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        body["code"] = self.code
        return body

    @classmethod
    def not_found(cls, plural: str, group: str, name: str) -> Self:
        """No object of that name."""
        return cls(
            404, "NotFound", f'{qualified(plural, group)} "{name}" not found', _details(plural, group, name)
        )

    @classmethod
    def no_such_resource(cls) -> Self:
        """Nothing is served under that path."""
        return cls(404, "NotFound", "the server could not find the requested resource", {})

    @classmethod
    def already_exists(cls, plural: str, group: str, name: str) -> Self:
        """The name is taken."""
        text = f'{qualified(plural, group)} "{name}" already exists'
        return cls(409, "AlreadyExists", text, _details(plural, group, name))

    @classmethod
    def conflict(cls, plural: str, group: str, name: str, why: str) -> Self:
        """Another client wrote in between, or the state does not allow it."""
        text = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
        return cls(409, "Conflict", text, _details(plural, group, name))

    @classmethod
    def precondition_failed(
        cls, plural: str, group: str, key: str, *, what: str = "UID", wanted: str, found: str
    ) -> Self:
        """The object of that key is not, or no longer, the one that was meant."""
        why = (
            f"StorageError: invalid object, Code: 4, Key: /registry/{plural}/{key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, "
            f"{what} in object meta: {found}"
        )
        return cls.conflict(plural, group, key.rpartition("/")[2], why)

    @classmethod
    def forbidden(cls, plural: str, group: str, name: str, why: str) -> Self:
        """A policy declines it."""
        text = f'{qualified(plural, group)} "{name}" is forbidden: {why}'
        return cls(403, "Forbidden", text, _details(plural, group, name))

    @classmethod
    def invalid(cls, kind: str, group: str, name: str, causes: list[Cause]) -> Self:
        """Fields are wrong; all of them are named."""
        lines = [str(cause) for cause in causes]
        summary = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
        details = _details(kind, group, name)
        details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
        return cls(422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {summary}', details)

    @classmethod
    def bad_request(cls, message: str) -> Self:
        """The request cannot be understood."""
        return cls(400, "BadRequest", message)

    @classmethod
    def method_not_allowed(cls) -> Self:
        """The resource has no such verb."""
        return cls(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
        )

    @classmethod
    def unsupported_media_type(cls, accepted: str) -> Self:
        """The body is in a format that is not read here."""
        text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        return cls(415, "UnsupportedMediaType", text)

    @classmethod
    def not_acceptable(cls) -> Self:
        """The client wants a format that is not written here."""
        text = "only the following media types are accepted: application/json"
        return cls(406, "NotAcceptable", text)

    @classmethod
    def expired(cls, message: str) -> Self:
        """The revision is gone from the history: list again."""
        return cls(410, "Expired", message)

    @classmethod
    def too_large_resource_version(cls, wanted: int, current: int) -> Self:
        """The client knows a later revision than this server has reached."""
        text = f"Timeout: Too large resource version: {wanted}, current: {current}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        return cls(504, "Timeout", text, {"causes": [cause], "retryAfterSeconds": 1})

    @classmethod
    def disruption_budget(cls, why: str, retry_after_seconds: int = 0) -> Self:
        """A disruption budget says not now."""
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
        if retry_after_seconds:
            details["retryAfterSeconds"] = retry_after_seconds
        return cls(429, "TooManyRequests", message, details)


def _details(kind: str, group: str, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details
