"""PATCH: from a stored object and a patch of one of four kinds to the new object.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go (v1.36).
"""

from typing import Any, Final

import msgspec

from berth.sandbox import content, schemas
from berth.sandbox.errors import ApiError
from berth.sandbox.event_conversion import NEW_VERSION, from_core
from berth.sandbox.patch_json import PatchError, json_patch, merge_patch
from berth.sandbox.patch_strategic import strategic_merge
from berth.sandbox.request import Request
from berth.sandbox.resources import Resource
from berth.sandbox.rest import Rest
from berth.sandbox.store import Entry, Json

_JSON_PATCH: Final = "application/json-patch+json"
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"


class Patcher:
    """Applies patches."""

    APPLY_TYPES: Final = (_APPLY,)

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def patch(self, request: Request, resource: Resource, entry: Entry) -> Json:
        """Give the object as the patch makes it.

        Raises: ApiError when the patch cannot be read or applied.
        """
        media = content.media_type(request)
        document = entry.decode()
        if resource.group_version == NEW_VERSION:
            document = from_core(document)
        patched = self._patched(request, resource, document, media)
        return content.clean(request, resource, patched)

    def _patched(self, request: Request, resource: Resource, document: Json, media: str) -> Json:
        if media not in (_JSON_PATCH, _MERGE, _STRATEGIC) or (media == _STRATEGIC and not resource.schema):
            accepted = [_JSON_PATCH, _MERGE, *([_STRATEGIC] if resource.schema else []), _APPLY]
            raise ApiError.unsupported_media_type(", ".join(accepted))
        try:
            patch: Any = msgspec.json.decode(request.body)
            if media == _JSON_PATCH:
                return json_patch(document, patch)
            if not isinstance(patch, dict):
                raise PatchError("a merge patch is an object")
            if media == _MERGE:
                merged: Json = merge_patch(document, patch)
                return merged
            return strategic_merge(document, patch, schemas.root(resource.schema))
        except PatchError as error:
            raise ApiError(
                422, "Invalid", f"the server rejected our request due to an error in our request: {error}"
            ) from None
        except msgspec.DecodeError as error:
            raise ApiError.bad_request(f"error decoding patch: {error}") from None

    def apply(
        self, request: Request, resource: Resource, entry: Entry | None, name: str, subresource: str
    ) -> tuple[Json, bool]:
        """Give the object as a server-side apply makes it, and whether it is new.

        Raises: ApiError when the fields are owned by somebody else.
        """
        document = content.parse(request.body, resource.kind, is_yaml=True)
        document.setdefault("metadata", {})["name"] = name
        if entry is None:
            return content.clean(request, resource, document), True
        return content.clean(
            request, resource, strategic_merge(entry.decode(), document, schemas.root(resource.schema))
        ), False

    def track(self, request: Request, entry: Entry | None, document: Json, subresource: str = "") -> None:
        """Note who set which fields."""
