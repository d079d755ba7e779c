"""What the scheduler writes about pods: bindings, conditions, annotations, evictions by deletion.

Called by: the scheduler process, from binding cycles and failure handling. An outcome goes back to
the queue; nothing here is retried unless it is certain that the first try had no effect.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from berth.client.api import MERGE_PATCH, STRATEGIC_PATCH, Api, Retry, never_landed
from berth.client.errors import (
    AmbiguousError,
    ClientError,
    ConflictError,
    NotFoundError,
    ObjectError,
    ServerError,
    ThrottledError,
)
from berth.client.resources import PODS
from berth.client.timing import After, after
from berth.client.transport import Transport
from berth.client.wire import encode
from berth.client.write_guard import WriteGuard
from berth.framework.pacing import Backoff


class Bound(msgspec.Struct, frozen=True):
    """The API server confirmed the binding."""


class Conflict(msgspec.Struct, frozen=True):
    """The pod is bound already, or was replaced by another of its name (409)."""

    message: str


class NotFound(msgspec.Struct, frozen=True):
    """The pod is gone (404)."""

    message: str


class Rejected(msgspec.Struct, frozen=True):
    """The binding did not land: the server said no, or (status 0) the request was never sent."""

    status: int
    message: str


class Ambiguous(msgspec.Struct, frozen=True):
    """The binding may have landed: keep the assumption, read the pod."""

    error: AmbiguousError


BindOutcome = Bound | Conflict | NotFound | Rejected | Ambiguous

CONFIRMED = Bound()


class _PodMeta(msgspec.Struct, omit_defaults=True):
    name: str
    namespace: str
    uid: str
    annotations: Mapping[str, str] | None = None


class _Target(msgspec.Struct):
    name: str
    kind: str = "Node"


class _Binding(msgspec.Struct, rename="camel"):
    metadata: _PodMeta
    target: _Target
    kind: str = "Binding"
    api_version: str = "v1"


NO_ANNOTATIONS: Mapping[str, str] = {}


def _status_patch_may_pass(error: ClientError) -> bool:
    if isinstance(error, ServerError):
        return error.status in {500, 503}
    return isinstance(error, ConflictError) or never_landed(error)


# Core 5.10: up to 4 tries, 10 ms at first, five times longer each, jitter 0.1.
_STATUS_BACKOFF = Backoff(0.01, factor=5.0, jitter=0.1)
STATUS_RETRY = Retry(4, _STATUS_BACKOFF, _status_patch_may_pass)


def _may_pass_on_that_version(error: ClientError) -> bool:
    return not isinstance(error, ConflictError) and _status_patch_may_pass(error)


STATUS_OF_VERSION_RETRY = Retry(4, _STATUS_BACKOFF, _may_pass_on_that_version)


def _outcome_of(error: ClientError) -> BindOutcome:
    """What an error says about a binding: all that can happen between here and the server has an outcome."""
    match error:
        case NotFoundError():
            return NotFound(error.message)
        case ConflictError():
            return Conflict(error.message)
        case AmbiguousError():
            return Ambiguous(error)
        case ObjectError() | ThrottledError():
            return Rejected(error.status, error.message)
    return Rejected(0, str(error))


class PodWrites:
    """Writes about pods. `may_write` is asked right before each one leaves (see leases)."""

    def __init__(
        self,
        transport: Transport,
        *,
        may_write: WriteGuard | None = None,
        timeout_seconds: float | None = None,
        after: After = after,
        rng: Random | None = None,
    ) -> None:
        self._api = Api(transport, after=after, rng=rng)
        self._may_write = may_write
        self._timeout_seconds = timeout_seconds

    def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        answered: Callable[[BindOutcome], object],
        annotations: Mapping[str, str] = NO_ANNOTATIONS,
    ) -> None:
        """Bind a pod to a node, and call `answered` once with what is known then.

        The UID keeps a recreated pod of that name from being bound. The API server writes the annotations to
        the pod in the same step.
        """
        metadata = _PodMeta(name, namespace, uid, annotations or None)
        self._api.send(
            "POST",
            PODS.path(namespace, name, "binding"),
            encode(_Binding(metadata, _Target(node))),
            lambda result: answered(CONFIRMED if isinstance(result, bytes) else _outcome_of(result)),
            timeout_seconds=self._timeout_seconds,
            guard=self._may_write,
        )

    async def patch_status(
        self, namespace: str, name: str, patch: Mapping[str, Any], *, uid: str = "", version: str = ""
    ) -> bytes:
        """Apply a strategic merge patch (`{"status": {...}}`) to the status of the pod of that UID.

        With `version`, only to that resourceVersion of it. Tried up to four times on 429, 500, 503, when it
        could not be sent, and without a version on 409.
        Raises: ConflictError where the pod has another version; ClientError.
        """
        metadata = {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}
        body = {"metadata": metadata, **patch} if metadata else patch
        path = PODS.path(namespace, name, "status")
        retry = STATUS_OF_VERSION_RETRY if version else STATUS_RETRY
        return await self._write("PATCH", path, body, content_type=STRATEGIC_PATCH, retry=retry)

    async def patch_metadata(
        self,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str | None] | None = None,
        labels: Mapping[str, str | None] | None = None,
    ) -> bytes:
        """Set annotations and labels, remove those given as None; with a UID, of that pod only."""
        metadata: dict[str, Any] = {"uid": uid} if uid else {}
        if annotations:
            metadata["annotations"] = annotations
        if labels:
            metadata["labels"] = labels
        path = PODS.path(namespace, name)
        return await self._write("PATCH", path, {"metadata": metadata}, content_type=MERGE_PATCH)

    async def delete(
        self, namespace: str, name: str, uid: str, *, grace_period_seconds: int | None = None
    ) -> bytes:
        """Delete the pod with this UID; ConflictError says that the name belongs to another now."""
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
        }
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        return await self._write("DELETE", PODS.path(namespace, name), options)

    async def get(self, namespace: str, name: str) -> bytes:
        """The pod as the API server has it now: what settles an Ambiguous outcome."""
        return await self._api.get(PODS, namespace, name)

    async def _write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        *,
        content_type: str = "application/json",
        retry: Retry | None = None,
    ) -> bytes:
        return await self._api.call(
            method,
            path,
            encode(body),
            content_type=content_type,
            retry=retry,
            timeout_seconds=self._timeout_seconds,
            guard=self._may_write,
        )
