"""Writes to the pod that this scheduler runs in which of its plugins are ready, and why others are not.

    conditions of plugins --looked at every second--> status.conditions of our own pod, where they changed

An operator, or `kubectl get pod -o yaml`, sees there what only the scheduler knows: a plugin whose container
runs may still refuse its arguments.

Source: Kubernetes pod conditions; docs/decisions/0019-plugin-conditions.md.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from berth.client.errors import ClientError
from berth.client.pods import Pods
from berth.config.out_of_tree.sidecars import arguments_digest
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.conditions import Kind

log = logging.getLogger(__name__)

POD_NAME, POD_NAMESPACE = "POD_NAME", "POD_NAMESPACE"
"""Where the process learns of its pod, by the downward API."""
TYPE_PREFIX = "plugin.berth.dev/"
ARGUMENTS_PREFIX = f"arguments.{TYPE_PREFIX}"
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


class PluginReadiness:
    """Keeps two conditions on our pod for each plugin: whether it is ready, and took its arguments."""

    def __init__(self, attaching: Attaching, pods: Pods, pod: OwnPod) -> None:
        self._attaching = attaching
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
                    log.warning("plugins not shown on pod=%s/%s error=%s", *self._pod, error)
                failed = str(error)
            await asyncio.sleep(LOOK_SECONDS)

    async def tell(self) -> None:
        """Write the conditions that changed.

        Raises: ClientError.
        """
        names = dict.fromkeys(each["name"] for each in self._attaching.list())
        found = {one["type"]: one for name in names for one in self._conditions(name)}
        changed = [condition for kind, condition in found.items() if self._written.get(kind) != condition]
        changed += [{"type": gone, "$patch": "delete"} for gone in self._written.keys() - found.keys()]
        if changed:
            await self._pods.patch_status(*self._pod, {"status": {"conditions": changed}})
            self._written = found

    def _conditions(self, name: str) -> Iterator[Json]:
        """Whether the plugin is ready, and whether it took its arguments: then with their digest."""
        described = self._attaching.describe(name)
        by_type = {each["type"]: each for each in described["conditions"]}
        yield {**by_type[Kind.READY], "type": f"{TYPE_PREFIX}{name}"}
        if (arguments := by_type.get(Kind.ARGUMENTS_ACCEPTED)) is not None:
            digest = arguments_digest(self._attaching.entry_arguments(name))
            message = digest if arguments["status"] == "True" else arguments["message"]
            yield {**arguments, "type": f"{ARGUMENTS_PREFIX}{name}", "message": message}
