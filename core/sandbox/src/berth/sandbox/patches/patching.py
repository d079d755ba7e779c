"""PATCH: from a stored object and a patch of one of four kinds to the new object.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go (v1.36).
"""

from typing import Any, Final

import msgspec

from berth.sandbox.bodies import content
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.patches.json_patch import PatchError, json_patch, merge_patch
from berth.sandbox.patches.server_side_apply import Writer, applied_object, apply_to, track_update
from berth.sandbox.patches.strategic import strategic_merge
from berth.sandbox.reading.event_conversion import NEW_VERSION, from_core
from berth.sandbox.request import ReceivedRequest
from berth.sandbox.rest import RestStorage
from berth.sandbox.store import Json, StoredObject

_JSON_PATCH: Final = "application/json-patch+json"
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_NO_MANAGER: Final = (
    'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
)
_APPLY: Final = "application/apply-patch+yaml"


class Patcher:
    """Applies patches."""

    APPLY_TYPES: Final = (_APPLY,)

    def __init__(self, rest: RestStorage) -> None:
        self._rest = rest

    def patch(self, request: ReceivedRequest, resource: ServedResource, entry: StoredObject) -> Json:
        """Give the object as the patch makes it.

        Raises: ApiError when the patch cannot be read or applied.
        """
        media = content.media_type(request)
        document = entry.decode()
        if resource.group_version == NEW_VERSION:
            document = from_core(document)
        patched = self._patched(request, resource, document, media)
        return content.clean(request, resource, patched)

    def _patched(
        self, request: ReceivedRequest, resource: ServedResource, document: Json, media: str
    ) -> Json:
        if media not in (_JSON_PATCH, _MERGE, _STRATEGIC) or (media == _STRATEGIC and not resource.schema):
            accepted = [_JSON_PATCH, _MERGE, *([_STRATEGIC] if resource.schema else []), _APPLY]
            raise ApiError.unsupported_media_type(", ".join(accepted))
        try:
            patch: Any = msgspec.json.decode(request.body)
            return _apply_patch(media, document, patch, resource)
        except PatchError as error:
            raise ApiError(
                422, "Invalid", f"the server rejected our request due to an error in our request: {error}"
            ) from None
        except msgspec.DecodeError as error:
            raise ApiError.bad_request(f"error decoding patch: {error}") from None

    def apply(
        self,
        request: ReceivedRequest,
        resource: ServedResource,
        entry: StoredObject | None,
        name: str,
        subresource: str,
    ) -> Json:
        """Give the object as a server-side apply makes it.

        Raises: ApiError when the fields are owned by another manager, or no manager is named.
        """
        if not request.query.get("fieldManager"):
            raise ApiError(422, "Invalid", _NO_MANAGER)
        applied = content.parse(request.body, resource.kind, is_yaml=True)
        applied = content.clean(request, resource, applied)
        metadata = applied.setdefault("metadata", {})
        if metadata.get("managedFields"):
            raise ApiError.bad_request("metadata.managedFields must be nil")
        metadata["name"] = name
        writer = self._writer(request, resource, "Apply", subresource)
        schema = resource.root_schema
        if resource.has_status and not subresource and entry is not None:
            applied.pop("status", None)
        if entry is None:
            return applied_object(applied, schema, writer, status_apart=resource.has_status)
        return apply_to(entry.decode(), applied, schema, writer, force=request.flag("force"))

    def track(
        self,
        request: ReceivedRequest,
        resource: ServedResource,
        entry: StoredObject,
        document: Json,
        subresource: str,
    ) -> None:
        """Note in the document which fields this update changes, if the object's fields are tracked."""
        if b'"managedFields":[' not in entry.body:
            return
        old = entry.decode()
        # An explicitly empty list stops the tracking, as upstream's does.
        if document.get("metadata", {}).get("managedFields") == []:
            return
        writer = self._writer(request, resource, "Update", subresource)
        seen = {**old, "status": document.get("status", {})} if subresource == "status" else document
        document.setdefault("metadata", {})
        track_update(old, seen, resource.root_schema, writer)
        document["metadata"]["managedFields"] = seen["metadata"].get("managedFields")

    def _writer(
        self, request: ReceivedRequest, resource: ServedResource, operation: str, subresource: str
    ) -> Writer:
        now = self._rest.now()
        return Writer(request.manager, operation, resource.group_version, subresource, now)


def _apply_patch(media: str, document: Json, patch: Any, resource: ServedResource) -> Json:
    if media == _JSON_PATCH:
        return json_patch(document, patch)
    if not isinstance(patch, dict):
        raise PatchError("a merge patch is an object")
    if media == _MERGE:
        merged: Json = merge_patch(document, patch)
        return merged
    return strategic_merge(document, patch, resource.root_schema)
