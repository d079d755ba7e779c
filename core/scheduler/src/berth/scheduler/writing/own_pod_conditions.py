"""Conditions of the pod that this scheduler runs in: what only the scheduler knows of itself.

    conditions as they are --looked at every second--> status.conditions of our own pod, where they changed

An operator, or `kubectl get pod -o yaml`, sees there why a plugin whose container runs is not used, or why no
lease is held. Source: Kubernetes pod conditions; docs/decisions/0019-plugin-conditions.md.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from berth.client.errors import ClientError
from berth.client.pods import PodWrites

log = logging.getLogger(__name__)

POD_NAME, POD_NAMESPACE = "POD_NAME", "POD_NAMESPACE"
"""Where the process learns of its pod, by the downward API."""
LOOK_SECONDS = 1.0

Json = dict[str, Any]


class OwnPod(NamedTuple):
    """The pod that the process runs in."""

    namespace: str
    name: str

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "OwnPod | None":
        """The pod that the environment names, None outside of pods."""
        name, namespace = environ.get(POD_NAME), environ.get(POD_NAMESPACE)
        return cls(namespace, name) if name and namespace else None


class OwnPodConditions:
    """Keeps conditions on our pod; `found` gives them as they are now."""

    def __init__(self, found: Callable[[], Iterable[Json]], pods: PodWrites, pod: OwnPod) -> None:
        self._found = found
        self._pods = pods
        self._pod = pod
        self._written: dict[str, Json] = {}

    async def follow(self) -> None:
        """Write what changed, for as long as the process runs; what can't be written is tried again."""
        failed = ""
        while True:
            try:
                await self.tell()
                failed = ""
            except ClientError as error:
                if str(error) != failed:
                    log.warning("conditions not shown pod=%s err=%s", "/".join(self._pod), error)
                failed = str(error)
            await asyncio.sleep(LOOK_SECONDS)

    async def tell(self) -> None:
        """Write the conditions that changed.

        Raises: ClientError.
        """
        found = {one["type"]: one for one in self._found()}
        changed = [condition for kind, condition in found.items() if self._written.get(kind) != condition]
        changed += [{"type": gone, "$patch": "delete"} for gone in self._written.keys() - found.keys()]
        if changed:
            await self._pods.patch_status(*self._pod, {"status": {"conditions": changed}})
            self._written = found
