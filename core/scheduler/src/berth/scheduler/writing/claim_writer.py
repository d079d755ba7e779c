"""The core's writes to resource claims: read, change, write that very version, again where it is outdated.

A reservation, which every pod with claims waits for, begins with the version that is known, as upstream does.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go PostFilter, Unreserve, bindClaim
(Kubernetes v1.36).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from berth.client.api import MERGE_PATCH, STRATEGIC_PATCH, Api
from berth.client.errors import ConflictError, NotFoundError
from berth.client.resources import PODS, RESOURCE_CLAIMS
from berth.client.wire import bounded, decode_document, decode_head, encode
from berth.client.write_guard import WriteGuard
from berth.framework.ports.claim_writing import ClaimWriteError
from berth.objects.decode import decoder
from berth.objects.devices.resource_claims import Allocation, Consumer, ResourceClaim
from berth.objects.pods.pod import Pod
from berth.scheduler.writing.claim_documents import Document, has_opaque_values, read_claim

FINALIZER = "resource.kubernetes.io/delete-protection"
TRIES = 5

T = TypeVar("T")


class ApiClaimWriter:
    """Implements berth.framework.ports.claim_writing.ClaimWriter. `may_write` is asked before each write."""

    def __init__(self, api: Api, *, may_write: WriteGuard | None = None) -> None:
        self._api = api
        self._may_write = may_write
        self._decode = bounded(decoder(ResourceClaim))

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Create the claim under a name that the API server completes."""
        meta = claim.metadata
        owners = [msgspec.to_builtins(owner) for owner in meta.owner_references]
        document = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": generate_name,
                "namespace": claim.namespace,
                "annotations": dict(meta.annotations),
                "ownerReferences": owners,
            },
            "spec": msgspec.to_builtins(claim.spec),
        }
        path = RESOURCE_CLAIMS.collection(claim.namespace)
        return self._decode(await self._api.call("POST", path, encode(document), guard=self._may_write))

    async def reserve(
        self, claim: ResourceClaim, consumer: Consumer, allocation: Allocation | None
    ) -> ResourceClaim:
        """Reserve the claim for a pod or a group, with its allocation if it has none yet."""
        as_expected = (claim.allocation is None) == (allocation is not None)
        alive = claim.metadata.resource_version and claim.metadata.deletion_timestamp is None
        if as_expected and alive and not has_opaque_values(claim):
            # Whatever is otherwise than it was known shows when the claim is read.
            with suppress(ConflictError, NotFoundError):
                return await self._reserve_known(claim, consumer, allocation)

        async def attempt() -> ResourceClaim:
            document = await self._read(claim)
            # Pods of one group may write the allocation that they share at the same time.
            written = allocation is not None and _has(document, allocation)
            allocated = None if written else allocation
            _check(document, claim, allocates=allocated is not None)
            if allocated is not None:
                await self._protect(document)
            return await self._write_status(document, _reserved(document, consumer, allocated))

        return await self._persistently(claim, attempt)

    async def _reserve_known(
        self, claim: ResourceClaim, consumer: Consumer, allocation: Allocation | None
    ) -> ResourceClaim:
        """Reserve this version of the claim; finalizers and consumers that it has are kept.

        Raises: ConflictError where it has another version, or UID, by now.
        """
        version = claim.metadata.resource_version
        status: Document = {"reservedFor": [consumer]}
        if allocation is not None:
            answer = await self._patch(claim, {"resourceVersion": version, "finalizers": [FINALIZER]})
            version = decode_head(answer).metadata.resource_version
            status["allocation"] = allocation
        return self._decode(await self._patch(claim, {"resourceVersion": version}, status=status))

    async def _patch(
        self, claim: ResourceClaim, metadata: Document, *, status: Document | None = None
    ) -> bytes:
        """Patch the claim's metadata, or its status."""
        body: Document = {"metadata": {"uid": claim.uid, **metadata}}
        if status is not None:
            body["status"] = status
        path = RESOURCE_CLAIMS.path(claim.namespace, claim.name, "" if status is None else "status")
        return await self._api.call(
            "PATCH", path, encode(body), content_type=STRATEGIC_PATCH, guard=self._may_write
        )

    async def unreserve(self, claim: ResourceClaim, consumer: Consumer) -> ResourceClaim:
        """Reserve the claim for that pod or group no more."""

        async def attempt() -> ResourceClaim:
            document = await self._read(claim)
            kept = [c for c in _status(document).get("reservedFor") or () if c.get("uid") != consumer.uid]
            return await self._write_status(document, {"reservedFor": kept or None})

        return await self._persistently(claim, attempt)

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take allocation, consumers and device statuses out of this version of the claim."""
        nothing = {"allocation": None, "reservedFor": None, "devices": None}
        try:
            document = await self._read(claim)
            document["metadata"]["resourceVersion"] = claim.metadata.resource_version
            return await self._write_status(document, nothing)
        except (ConflictError, NotFoundError) as error:
            raise ClaimWriteError(error.message) from error

    async def delete(self, claim: ResourceClaim) -> None:
        """Lift the protection from deletion and delete the claim."""

        async def attempt() -> None:
            document = await self._read(claim)
            finalizers = document["metadata"].get("finalizers") or ()
            if FINALIZER in finalizers:
                document["metadata"]["finalizers"] = [f for f in finalizers if f != FINALIZER]
                await self._update(document)
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": claim.uid}}
            path = RESOURCE_CLAIMS.path(claim.namespace, claim.name)
            await self._api.call("DELETE", path, encode(body), guard=self._may_write)

        try:
            await self._persistently(claim, attempt)
        except ClaimWriteError as error:
            if not isinstance(error.__cause__, NotFoundError):
                raise

    async def publish(self, pod: Pod, claim_name: str, mappings: Sequence[Mapping[str, Any]]) -> None:
        """Tell in the pod's status which claim serves its extended resources, and how."""
        served = {"resourceClaimName": claim_name, "requestMappings": list(mappings)}
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": served}}
        path = PODS.path(pod.namespace, pod.name, "status")
        await self._api.call("PATCH", path, encode(patch), content_type=MERGE_PATCH, guard=self._may_write)

    async def _persistently(self, claim: ResourceClaim, attempt: Callable[[], Awaitable[T]]) -> T:
        """What the attempt gives, tried again on conflicts."""
        for tries_left in reversed(range(TRIES)):
            try:
                return await attempt()
            except NotFoundError as error:
                raise ClaimWriteError(f"claim {claim.key} is gone") from error
            except ConflictError as error:
                if not tries_left:
                    raise ClaimWriteError(error.message) from error
        raise AssertionError("the last try returns or raises")

    async def _read(self, claim: ResourceClaim) -> Document:
        document = await read_claim(self._api, claim)
        if document["metadata"].get("uid") != claim.uid:
            raise ClaimWriteError(f"claim {claim.key} got deleted in the meantime")
        return document

    async def _protect(self, document: Document) -> None:
        finalizers = document["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            document["metadata"]["finalizers"] = [*finalizers, FINALIZER]
            document["metadata"] = decode_document(await self._update(document))["metadata"]

    async def _write_status(self, document: Document, status: Mapping[str, Any]) -> ResourceClaim:
        changed = {**document, "status": {**_status(document), **status}}
        return self._decode(await self._update(changed, "status"))

    async def _update(self, document: Document, subresource: str = "") -> bytes:
        """Write the claim if it still has the document's uid and resourceVersion."""
        meta = document["metadata"]
        path = RESOURCE_CLAIMS.path(meta["namespace"], meta["name"], subresource)
        return await self._api.call("PUT", path, encode(document), guard=self._may_write)


def _status(document: Document) -> Document:
    return document.get("status") or {}


def _check(document: Document, claim: ResourceClaim, *, allocates: bool) -> None:
    if document["metadata"].get("deletionTimestamp"):
        raise ClaimWriteError(f"claim {claim.key} got deleted in the meantime")
    allocated = bool(_status(document).get("allocation"))
    if allocates and allocated:
        raise ClaimWriteError(f"claim {claim.key} got allocated elsewhere in the meantime")
    if not allocates and not allocated:
        raise ClaimWriteError(f"claim {claim.key} got deallocated elsewhere in the meantime")


def _has(document: Document, allocation: Allocation) -> bool:
    """Whether the claim has these very devices."""
    found = _status(document).get("allocation")
    if not found:
        return False
    devices = found.get("devices") or {}
    results = msgspec.to_builtins(allocation)["devices"]["results"]
    return [_device(one) for one in devices.get("results") or ()] == [_device(one) for one in results]


def _device(result: Document) -> tuple[Any, ...]:
    return tuple(result.get(field) for field in ("request", "driver", "pool", "device", "shareID"))


def _reserved(document: Document, consumer: Consumer, allocation: Allocation | None) -> Document:
    consumers = [c for c in _status(document).get("reservedFor") or () if c.get("uid") != consumer.uid]
    consumers.append(msgspec.to_builtins(consumer))
    if allocation is None:
        return {"reservedFor": consumers}
    return {"allocation": msgspec.to_builtins(allocation), "reservedFor": consumers}
