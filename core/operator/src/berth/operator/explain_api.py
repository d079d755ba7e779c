"""The APIService through which pods are explained: there only while a ready scheduler is behind it.

The API server counts a group whose server does not answer as unknown, and deletes no namespace before it
knows all groups (NamespaceDeletionDiscoveryFailure). So the operator that leads keeps it like this:

    absent ──a scheduler is ready──► present ──the last one is not, or this operator ends──► absent
                                        └──not Available for half a minute──► absent for ten minutes

It refers to the role of all schedulers as its owner, so that it goes when Berth is uninstalled, too.

Called by: process, while it leads. Decision 31 has the reasons.
"""

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from berth.client.api import Api
from berth.client.errors import ClientError, NotFoundError, lacks_rights
from berth.framework.clock import SYSTEM_CLOCK
from berth.operator.kinds import (
    API_SERVICES,
    AUTHORITY,
    CLUSTER_ROLES,
    EXPLAIN_API,
    FIELD_MANAGER,
    MANAGED_BY,
    Json,
)
from berth.operator.managed_objects import apply
from berth.operator.metrics import OperatorMetrics
from berth.operator.observed import ClusterView, ObjectName
from berth.operator.rendering import SchedulerDefaults
from berth.operator.rendering.configuration import SECURE_PORT
from berth.operator.rendering.names import CA_FILE, SELECTED

log = logging.getLogger(__name__)

UNREACHABLE_SECONDS: Final = 30.0
"""How long the API server may not reach a ready scheduler; a new Service takes it some seconds to know."""
WITHDRAWN_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 5.0
END_SECONDS: Final = 5.0
PORT: Final = 443


class Say(Protocol):
    """What makes an event of every Scheduler of the operator's namespace: type, reason, text."""

    def __call__(self, kind: str, reason: str, note: str) -> None:
        """Make the events."""


class ExplainApi:
    """Makes and deletes the APIService. Without a Service in `settings` there is to be none."""

    def __init__(
        self,
        api: Api,
        observed: ClusterView,
        metrics: OperatorMetrics,
        say: Say,
        *,
        namespace: str,
        settings: SchedulerDefaults,
        monotonic: Callable[[], float] = SYSTEM_CLOCK.monotonic,
    ) -> None:
        self._api = api
        self._observed = observed
        self._metrics = metrics
        self._say = say
        self._namespace = namespace
        self._settings = settings
        self._monotonic = monotonic
        self._unreachable_since: float | None = None
        self._withdrawn_until = 0.0
        self._failure = ""

    async def run(self) -> None:
        """Keep it until cancelled; what fails is reported once, and tried again after some seconds."""
        while True:
            self._observed.explain_api_due.clear()
            try:
                await self.keep()
            except ClientError as error:
                self._failed(str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._observed.explain_api_due.wait()

    async def keep(self) -> None:
        """Make, change or delete it. Raises: ClientError."""
        found = self._found()
        if not self._settings.explain_service:
            if found is not None and _is_managed(found):
                await self._delete()
            return
        reachable = self._is_reachable(found)
        refused = found is not None and _available(found) == "False"
        self._metrics.explain_api(unreachable=self._is_ready() and (refused or not reachable))
        if found is not None and not self._is_ours(found):
            self._failed(f"APIService {EXPLAIN_API} is not the operator's, and is left as it is; delete it")
        elif reachable and self._is_ready():
            await self._ensure(found)
            if found is not None and _available(found) == "True":
                self._failure = ""
        elif found is not None:
            await self._delete()

    async def withdraw(self) -> None:
        """Delete it when this operator ends: the next one makes it again, if there is a next one."""
        try:
            async with asyncio.timeout(END_SECONDS):
                found = self._found()
                if found is not None and self._is_ours(found):
                    await self._delete()
        except (ClientError, TimeoutError) as error:
            # Without rights it is being uninstalled: the APIService goes with the role that owns it.
            level = logging.INFO if lacks_rights(error) else logging.WARNING
            log.log(level, "not withdrawn apiservice=%s err=%s", EXPLAIN_API, error)

    def _is_ready(self) -> bool:
        return any(map(self._serves, self._observed.pods.objects.values()))

    def _serves(self, pod: Json) -> bool:
        metadata = pod["metadata"]
        chosen = SELECTED.items() <= (metadata.get("labels") or {}).items()
        if metadata["namespace"] != self._namespace or metadata.get("deletionTimestamp") or not chosen:
            return False
        found = (pod.get("status") or {}).get("conditions") or ()
        return any((one["type"], one["status"]) == ("Ready", "True") for one in found)

    def _is_reachable(self, found: Json | None) -> bool:
        """Say whether the API server reaches schedulers, as far as is known."""
        now = self._monotonic()
        if now < self._withdrawn_until:
            return False
        if found is None or _available(found) != "False":
            self._unreachable_since = None
            return True
        if self._unreachable_since is None:
            self._unreachable_since = now
        if now - self._unreachable_since < UNREACHABLE_SECONDS:
            return True
        self._unreachable_since, self._withdrawn_until = None, now + WITHDRAWN_SECONDS
        self._failed(
            f"the API server does not reach schedulers that are ready: {_message(found)}; no namespace can "
            f"be deleted while APIService {EXPLAIN_API} does not answer, so it is withdrawn for "
            f"{WITHDRAWN_SECONDS:.0f} s; open port {SECURE_PORT} of the schedulers' pods to the control "
            "plane, or switch explanations through the API server off (BERTH_EXPLAIN_SERVICE)"
        )
        return False

    async def _ensure(self, found: Json | None) -> None:
        published = self._observed.published.objects.get(ObjectName(self._namespace, AUTHORITY))
        authority = ((published or {}).get("data") or {}).get(CA_FILE)
        if not authority:  # made with the first Scheduler, which then has this looked at again
            return
        spec = self._spec(authority)
        if found is not None and _is_managed(found) and spec.items() <= found["spec"].items():
            return
        metadata: Json = {"name": EXPLAIN_API, "labels": _LABELS, "ownerReferences": [await self._owner()]}
        head = {"apiVersion": API_SERVICES.api_version, "kind": "APIService", "metadata": metadata}
        self._observed.api_services.note(await apply(self._api, API_SERVICES, {**head, "spec": spec}))

    def _spec(self, authority: str) -> Json:
        version, _, group = EXPLAIN_API.partition(".")
        return {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": b64encode(authority.encode()).decode(),
            "service": {"name": self._settings.explain_service, "namespace": self._namespace, "port": PORT},
        }

    async def _owner(self) -> Json:
        role = msgspec.json.decode(await self._api.get(CLUSTER_ROLES, "", self._settings.role))
        head = {"apiVersion": CLUSTER_ROLES.api_version, "kind": "ClusterRole"}
        return {**head, "name": self._settings.role, "uid": role["metadata"]["uid"]}

    async def _delete(self) -> None:
        with suppress(NotFoundError):
            await self._api.delete(API_SERVICES, "", EXPLAIN_API, b"{}")

    def _found(self) -> Json | None:
        return self._observed.api_services.objects.get(ObjectName("", EXPLAIN_API))

    def _is_ours(self, found: Json) -> bool:
        service = found["spec"].get("service") or {}
        behind = (service.get("namespace"), service.get("name"))
        return _is_managed(found) or behind == (self._namespace, self._settings.explain_service)

    def _failed(self, text: str) -> None:
        if text != self._failure:
            self._failure = text
            log.warning("explanations are not served through the API server err=%s", text)
            self._say("Warning", "ExplanationsNotServed", text)


_LABELS: Final = {MANAGED_BY: FIELD_MANAGER, "app.kubernetes.io/part-of": "berth"}


def _is_managed(found: Json) -> bool:
    return bool((found["metadata"].get("labels") or {}).get(MANAGED_BY) == FIELD_MANAGER)


def _condition(found: Json) -> dict[str, Any]:
    every = (found.get("status") or {}).get("conditions") or ()
    return next((one for one in every if one["type"] == "Available"), {})


def _available(found: Json) -> str:
    return str(_condition(found).get("status", ""))


def _message(found: Json) -> str:
    condition = _condition(found)
    return f"{condition.get('reason', '')}: {condition.get('message', '')}"[:512]
