"""The core's writes to volumes and claims: merge patches that land on the version they were made for.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go bindAPIUpdate (Kubernetes v1.36).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from berth.client.api import MERGE_PATCH, Api
from berth.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Resource
from berth.client.wire import bounded, encode
from berth.client.write_guard import WriteGuard
from berth.objects.api_object import TypedObject
from berth.objects.decode import decoder
from berth.objects.volumes.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)


class ApiVolumeWriter:
    """Implements berth.framework.handle.VolumeWriter. `may_write` is asked right before each write."""

    def __init__(self, api: Api, *, may_write: WriteGuard | None = None) -> None:
        self._api = api
        self._may_write = may_write
        self._read_volume = bounded(decoder(PersistentVolume))
        self._read_claim = bounded(decoder(PersistentVolumeClaim))

    async def keep_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume's claim reference and who set it; the volume as stored.

        Raises: ClientError, a ConflictError where the volume was written since.
        """
        spec = {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)}
        patch = {"metadata": _metadata(volume, BOUND_BY_CONTROLLER), "spec": spec}
        return self._read_volume(await self._patch(PERSISTENT_VOLUMES, volume, patch))

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the node that is selected for the claim's new volume; the claim as stored.

        Raises: ClientError, a ConflictError where the claim was written since.
        """
        patch = {"metadata": _metadata(claim, SELECTED_NODE)}
        return self._read_claim(await self._patch(PERSISTENT_VOLUME_CLAIMS, claim, patch))

    async def _patch(self, resource: Resource, obj: TypedObject, patch: Mapping[str, Any]) -> bytes:
        return await self._api.call(
            "PATCH",
            resource.path(obj.namespace, obj.name),
            encode(patch),
            content_type=MERGE_PATCH,
            guard=self._may_write,
        )


def _metadata(obj: TypedObject, annotation: str) -> dict[str, Any]:
    """The version that the write is for, and the annotation if the object has it."""
    held = obj.metadata.annotations
    annotations = {annotation: held[annotation]} if annotation in held else {}
    return {
        "uid": obj.uid,
        "resourceVersion": obj.metadata.resource_version,
        "annotations": annotations,
    }
