"""Writes status to the API server, in a thread of its own: no call of the scheduler waits for it.

Only a plugin whose scheduler leads writes: it was asked about a pod in this run of the scheduler. What is
written is compared with what was written last, so that a quiet cluster costs no write.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any, Protocol

from berth_queues.status import Status
from berth_sdk import Clock, ObjectKey, Timer

LOOK_SECONDS = 1.0
MAX_WRITES = 50
"""In a turn: the others have theirs in the next ones."""
GONE = 404
JSON_PATCH = "application/json-patch+json"

log = logging.getLogger(__name__)


class StatusClient(Protocol):
    """Writes one object's status."""

    def write(self, key: ObjectKey, status: dict[str, Any]) -> None:
        """Replace the status. Raises: Exception: it was not written."""


class StatusWriter:
    """Has statuses written that became others."""

    def __init__(self, clock: Clock, client: StatusClient, statuses: Callable[[], Iterable[Status]]) -> None:
        self._clock, self._client, self._statuses = clock, client, statuses
        self._wanted: SimpleQueue[list[Status] | None] = SimpleQueue()
        self._written: dict[ObjectKey, dict[str, Any]] = {}
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._work, name="status", daemon=True)
        self._thread.start()
        self._timer: Timer | None = None
        self.leads = False

    def lead(self) -> None:
        """Write from now on."""
        self.leads = True
        if self._timer is None:
            self._timer = self._clock.after(LOOK_SECONDS, self._look)

    def follow(self) -> None:
        """Write nothing until the scheduler leads again, and everything then."""
        self.leads = False
        self._written = {}

    def stop(self) -> None:
        """End the thread once it has written what it has."""
        if self._timer is not None:
            self._timer.cancel()
        self._wanted.put(None)
        self._thread.join(LOOK_SECONDS)

    def _look(self) -> None:
        self._timer = None
        if not self.leads:
            return
        self._timer = self._clock.after(LOOK_SECONDS, self._look)
        if not self._idle.is_set():
            return
        current = list(self._statuses())
        changed = [each for each in current if self._written.get(each.key) != each.status][:MAX_WRITES]
        known = {each.key for each in current}
        self._written = {key: status for key, status in self._written.items() if key in known}
        if changed:
            self._idle.clear()
            self._wanted.put(changed)

    def _work(self) -> None:
        while (several := self._wanted.get()) is not None:
            written = self._written
            for each in several:
                try:
                    self._client.write(each.key, each.status)
                except Exception as error:  # noqa: BLE001 - it is tried again in the next turn
                    name = f"{each.key.namespace}/{each.key.name}"
                    log.warning("status not written kind=%s name=%s error=%s", each.key.resource, name, error)
                else:
                    written[each.key] = each.status
            self._idle.set()


class KubernetesClient:
    """The API server, by a kubeconfig or by a pod's service account.

    Raises: kubernetes.config.ConfigException: there is neither.
    """

    def __init__(self, kubeconfig: str | None) -> None:
        # Imported here, since it takes long, and most runs write nothing.
        from kubernetes import client, config  # noqa: PLC0415
        from kubernetes.config import incluster_config  # noqa: PLC0415

        if kubeconfig:
            config.load_kube_config(kubeconfig)  # type: ignore[no-untyped-call]
        else:
            # Where containers have no mount namespace, this variable says what mount paths stand behind.
            root = os.environ.get("CONTAINER_SANDBOX_MOUNT_POINT", "").rstrip("/")
            names = (incluster_config.SERVICE_TOKEN_FILENAME, incluster_config.SERVICE_CERT_FILENAME)
            files = (f"{root}{name}" for name in names)
            incluster_config.InClusterConfigLoader(*files).load_and_set()  # type: ignore[no-untyped-call]
        self._api = client.CustomObjectsApi()

    def write(self, key: ObjectKey, status: dict[str, Any]) -> None:
        """Replace the status; an object that is gone has none."""
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

        body = [{"op": "add", "path": "/status", "value": status}]
        where = (key.group, key.version)
        try:
            if key.namespace:
                within = self._api.patch_namespaced_custom_object_status
                within(*where, key.namespace, key.resource, key.name, body, _content_type=JSON_PATCH)
            else:
                at = self._api.patch_cluster_custom_object_status
                at(*where, key.resource, key.name, body, _content_type=JSON_PATCH)
        except ApiException as error:
            if error.status != GONE:
                raise
