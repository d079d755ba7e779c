"""One look at one Scheduler: what is missing or changed is applied, what is left over goes, its status told.

Called by: process, with one key after the other; it never runs twice at a time.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from berth.client.api import APPLY_PATCH, Api
from berth.client.errors import AnsweredError, ClientError, NotFoundError
from berth.client.events import EventRecorder, Reference
from berth.client.resources import Resource
from berth.operator.conditions import DEGRADED, Condition, Problem, conditions, is_rolled_out, plugin_states
from berth.operator.drift import differs
from berth.operator.errors import PlanError
from berth.operator.kinds import (
    CLUSTER_ROLE_BINDINGS,
    FIELD_MANAGER,
    KEPT,
    PLUGINS,
    SCHEDULERS,
    VERSION,
    Json,
    Key,
    key_of,
)
from berth.operator.metrics import OperatorMetrics
from berth.operator.observed import Name, Observed
from berth.operator.rendering import Plan, Settings, plan
from berth.operator.rendering.names import base_name
from berth.operator.rendering.plan import APPLIED
from berth.operator.status import plugin_status, scheduler_status

log = logging.getLogger(__name__)

CONTROLLER = "berth-operator"
# Reasons of conditions that do not hold and need nobody's attention.
_ORDINARY = frozenset({"RolledOut", "Paused", "Starting", "NotDeployed", "ScaledToZero", "PluginNotReady"})


class Reconciler:
    """Brings what is kept for Schedulers in line with them."""

    def __init__(
        self,
        api: Api,
        observed: Observed,
        events: EventRecorder,
        metrics: OperatorMetrics,
        *,
        settings: Callable[[], Settings],
        now: Callable[[], str],
    ) -> None:
        self._api = api
        self._observed = observed
        self._events = events
        self._metrics = metrics
        self._settings = settings
        self._now = now

    async def reconcile(self, key: Key) -> None:
        """Look at a Scheduler.

        Raises: ClientError when something could not be written; look again later.
        """
        scheduler = self._observed.scheduler(key)
        if scheduler is None:
            self._metrics.forget(key)
            await self._collect(key)
            return
        problem: Problem | None = None
        failure: ClientError | None = None
        made: Plan | None = None
        try:
            made = plan(scheduler, self._observed.plugins_in(key.namespace), self._settings())
            await self._apply(key, made)
        except PlanError as error:
            problem = Problem(error.reason, str(error))
        except ClientError as error:
            problem, failure = Problem("ApplyFailed", str(error)), error
        await self._report(key, scheduler, made, problem)
        if failure is not None:
            raise failure

    async def _apply(self, key: Key, made: Plan) -> None:
        for wanted in made.objects:
            kind, metadata = wanted["kind"], wanted["metadata"]
            found = self._found(kind, metadata.get("namespace", ""), metadata["name"])
            if differs(found, wanted):
                await self._apply_one(KEPT[kind], wanted)
                self._metrics.applied(kind)
                if found is not None and _mark(found) == _mark(wanted):
                    self._say(key, "Normal", "DriftCorrected", f"{kind} {metadata['name']} was changed back")
        await self._prune(key, made)

    def _found(self, kind: str, namespace: str, name: str) -> Json | None:
        mirror = self._observed.kept.get(kind)
        return mirror.objects.get(Name(namespace, name)) if mirror is not None else None

    async def _apply_one(self, resource: Resource, wanted: Json, subresource: str = "") -> None:
        metadata = wanted["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
        query: dict[str, Any] = {"fieldManager": FIELD_MANAGER, "force": "true"}
        body = msgspec.json.encode(wanted)
        try:
            await self._api.call("PATCH", path, body, query=query, content_type=APPLY_PATCH)
        except AnsweredError as error:
            error.args = (f"{wanted['kind']} {metadata['name']}: {error.message}",)
            raise

    async def _prune(self, key: Key, made: Plan) -> None:
        wanted = {(one["kind"], one["metadata"]["name"]) for one in made.objects}
        deployment = self._found("Deployment", key.namespace, base_name(key))
        for kind, found in tuple(self._observed.kept_for(key)):
            name = found["metadata"]["name"]
            if (kind, name) in wanted or found["metadata"].get("deletionTimestamp"):
                continue
            # Pods of the last rollout may still read, or be restarted with, their own configuration.
            if kind == "ConfigMap" and (deployment is None or not is_rolled_out(deployment)):
                continue
            await self._delete(KEPT[kind], found)

    async def _collect(self, key: Key) -> None:
        """Delete what no owner reference takes along: what is cluster-wide."""
        for _, found in tuple(self._observed.kept_for(key)):
            if "namespace" not in found["metadata"]:
                await self._delete(CLUSTER_ROLE_BINDINGS, found)

    async def _delete(self, resource: Resource, found: Json) -> None:
        metadata = found["metadata"]
        body = msgspec.json.encode({"preconditions": {"uid": metadata["uid"]}})
        try:
            await self._api.delete(resource, metadata.get("namespace", ""), metadata["name"], body)
        except NotFoundError:
            return

    async def _report(self, key: Key, scheduler: Json, made: Plan | None, problem: Problem | None) -> None:
        deployment = self._found("Deployment", key.namespace, base_name(key))
        pods = self._observed.pods_of(key)
        plugins = self._running_plugins(key, scheduler, made)
        found = conditions(deployment, pods, plugins, problem)
        self._metrics.conditions(key, found)
        self._announce(key, scheduler, found)
        fingerprint = made.fingerprint if made is not None and problem is None else ""
        status = scheduler_status(
            scheduler, deployment, pods, plugins, found, fingerprint=fingerprint, now=self._now()
        )
        await self._write_status("Scheduler", SCHEDULERS, scheduler, status)
        for plugin in tuple(self._observed.plugins_in(key.namespace).values()):
            await self._report_plugin(plugin)

    def _running_plugins(self, key: Key, scheduler: Json, made: Plan | None) -> list[Json]:
        if made is not None:
            return list(made.configuration.plugins)
        known = self._observed.plugins_in(key.namespace)
        return [known[one["name"]] for one in scheduler["spec"].get("plugins") or () if one["name"] in known]

    async def _report_plugin(self, plugin: Json) -> None:
        states: Mapping[Key, str] = {
            key_of(user): plugin_states([plugin], self._observed.pods_of(key_of(user)))[
                plugin["metadata"]["name"]
            ]
            for user in self._observed.users_of(key_of(plugin))
        }
        await self._write_status(
            "SchedulerPlugin", PLUGINS, plugin, plugin_status(plugin, states, self._now())
        )

    async def _write_status(self, kind: str, resource: Resource, document: Json, status: Json) -> None:
        if document.get("status") == status:
            return
        metadata = {"name": document["metadata"]["name"], "namespace": document["metadata"]["namespace"]}
        wanted = {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "status": status}
        try:
            await self._apply_one(resource, wanted, "status")
        except NotFoundError:  # it went in between
            return

    def _announce(self, key: Key, scheduler: Json, found: list[Condition]) -> None:
        before = {one["type"]: one for one in (scheduler.get("status") or {}).get("conditions") or ()}
        for one in found:
            old = before.get(one.type)
            if old is not None and (old["status"] == "True", old["reason"]) == (one.holds, one.reason):
                continue
            if old is None and one.type == DEGRADED and not one.holds:
                continue
            bad = one.holds == (one.type == DEGRADED) and one.reason not in _ORDINARY
            self._say(key, "Warning" if bad else "Normal", one.reason, one.message or one.type)

    def _say(self, key: Key, kind: str, reason: str, note: str) -> None:
        scheduler = self._observed.scheduler(key)
        uid = scheduler["metadata"]["uid"] if scheduler is not None else ""
        about = Reference(VERSION, "Scheduler", key.namespace, key.name, uid)
        self._events.event(
            about, controller=CONTROLLER, type=kind, reason=reason, action="Reconcile", note=note or reason
        )
        log.info("%s: scheduler=%s note=%s", reason, key, note)


def _mark(document: Json) -> str | None:
    """Give what an object says of what it was made of."""
    found: str | None = (document["metadata"].get("annotations") or {}).get(APPLIED)
    return found
