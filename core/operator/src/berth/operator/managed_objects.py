"""Creates, updates and deletes the objects that a Scheduler controls, and no others.

Called by: reconciler, with a plan.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from berth.client.api import APPLY_PATCH, Api
from berth.client.errors import AnsweredError, ClientError, ConflictError, NotFoundError
from berth.client.resources import Resource
from berth.operator.drift import differs
from berth.operator.errors import NotControlledError
from berth.operator.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    FIELD_MANAGER,
    KEPT,
    Json,
    SchedulerKey,
    key_of,
)
from berth.operator.metrics import OperatorMetrics
from berth.operator.observed import ClusterView, ObjectName
from berth.operator.ownership import is_cluster_wide_of, is_controlled
from berth.operator.rendering import SchedulerPlan
from berth.operator.rendering.names import base_name
from berth.operator.rendering.plan import APPLIED
from berth.operator.rendering.pod import HASH
from berth.operator.reporting.conditions import is_rolled_out

# An apply from this version creates an object where there is none, and conflicts with any that is there: no
# object has it, for etcd counts from the empty store. Without it an apply would merge into what others made.
NONE_THERE: Final = "1"
_RIGHTS: Final = ("ClusterRoleBinding", "Role", "RoleBinding")
_NEEDED_BY_PODS: Final = (*_RIGHTS, "ConfigMap", "Secret")
_WITH_PODS: Final = ("Deployment", "CronJob")


@dataclass(slots=True)
class Applied:
    """The result of applying a plan."""

    kinds: set[str] = field(default_factory=set)
    wrong: list[tuple[str, NotControlledError | ClientError]] = field(default_factory=list)
    """The errors, with the kind of the object."""


class ManagedObjects:
    """Writes the objects of Schedulers; `drifted` is called with kind and name of what was changed back."""

    def __init__(
        self,
        api: Api,
        observed: ClusterView,
        metrics: OperatorMetrics,
        drifted: Callable[[SchedulerKey, str, str], None],
    ) -> None:
        self._api = api
        self._observed = observed
        self._metrics = metrics
        self._drifted = drifted

    def found(self, kind: str, namespace: str, name: str) -> Json | None:
        """Give an object that is kept, as it was last seen."""
        mirror = self._observed.kept.get(kind)
        return mirror.objects.get(ObjectName(namespace, name)) if mirror is not None else None

    async def apply(self, scheduler: Json, made: SchedulerPlan, done: Applied) -> None:
        """Make and change what differs from the plan; what fails does not keep the rest from being applied.

        Nothing runs under, or is bound to, a service account of another: what depends on an object that could
        not be applied is left out, also where `done` has it from before.
        """
        for wanted in made.objects:
            kind = wanted["kind"]
            if kind in _dependents(done):
                continue
            try:
                with about(wanted):
                    if await self._ensure(scheduler, wanted):
                        done.kinds.add(kind)
            except (NotControlledError, ClientError) as error:
                done.wrong.append((kind, error))

    async def _ensure(self, scheduler: Json, wanted: Json) -> bool:
        """Say whether the object had to be written. Raises: NotControlledError, ClientError."""
        kind, metadata = wanted["kind"], wanted["metadata"]
        found = self.found(kind, metadata.get("namespace", ""), metadata["name"])
        if found is None:
            await self._create(scheduler, wanted)
        elif not is_controlled(found, scheduler):
            raise NotControlledError(kind, metadata["name"])
        elif (changed := differs(found, wanted)) or _lacks_owner(kind, found):
            await self._write(wanted, uid=found["metadata"]["uid"])
            if changed and _mark(found) == _mark(wanted):
                self._drifted(key_of(scheduler), kind, metadata["name"])
        else:
            return False
        self._metrics.applied(kind)
        return True

    async def _create(self, scheduler: Json, wanted: Json) -> None:
        try:
            await self._write(wanted, resourceVersion=NONE_THERE)
        except ConflictError:
            # Made a moment ago and not seen yet, without its labels and so never seen, or another's.
            there = await self._look_up(wanted)
            if there is None:
                raise
            if not is_controlled(there, scheduler):
                raise NotControlledError(wanted["kind"], wanted["metadata"]["name"]) from None
            await self._write(wanted, uid=there["metadata"]["uid"])

    async def _look_up(self, wanted: Json) -> Json | None:
        """Read an object that is not mirrored, by the right to list its kind."""
        metadata, resource = wanted["metadata"], KEPT[wanted["kind"]]
        query: dict[str, Any] = {"fieldSelector": f"metadata.name={metadata['name']}"}
        answer = await self._api.call("GET", resource.collection(metadata.get("namespace", "")), query=query)
        items = msgspec.json.decode(answer).get("items") or ()
        return next(iter(items), None)

    async def _write(self, wanted: Json, **precondition: str) -> None:
        metadata = {**wanted["metadata"], **precondition}
        if wanted["kind"] == "ClusterRoleBinding":
            metadata["ownerReferences"] = [await self._role(wanted["roleRef"]["name"])]
        await apply(self._api, KEPT[wanted["kind"]], {**wanted, "metadata": metadata})

    async def _role(self, name: str) -> Json:
        """Give the reference to a role by which its bindings go with it when it is uninstalled."""
        role = msgspec.json.decode(await self._api.get(CLUSTER_ROLES, "", name))
        head = {"apiVersion": CLUSTER_ROLES.api_version, "kind": "ClusterRole"}
        return {**head, "name": name, "uid": role["metadata"]["uid"]}

    async def prune(self, scheduler: Json, made: SchedulerPlan, done: Applied) -> None:
        """Delete objects that the plan no longer has; one that old pods use is deleted after those pods.

        Raises: ClientError.
        """
        key = key_of(scheduler)
        wanted = {(one["kind"], one["metadata"]["name"]) for one in made.objects}
        settled = "Deployment" not in done.kinds and self._is_settled(key, made.fingerprint)
        for kind, found in tuple(self._observed.kept_for(key)):
            metadata = found["metadata"]
            if (kind, metadata["name"]) in wanted or metadata.get("deletionTimestamp"):
                continue
            if is_controlled(found, scheduler) and (settled or kind not in _NEEDED_BY_PODS):
                await self._delete(KEPT[kind], found)

    def _is_settled(self, key: SchedulerKey, fingerprint: str) -> bool:
        """Say whether all pods are of the present template, those that are still ending included."""
        deployment = self.found("Deployment", key.namespace, base_name(key))
        if deployment is None or not is_rolled_out(deployment):
            return False
        pods = [pod["metadata"] for pod in self._observed.all_pods_of(key)]
        return all(
            (one.get("annotations") or {}).get(HASH) == fingerprint and not one.get("deletionTimestamp")
            for one in pods
        )

    async def collect(self, key: SchedulerKey) -> None:
        """Delete what no owner reference takes along with a Scheduler.

        To be called once its last pod is gone.

        Raises: ClientError.
        """
        for _, found in tuple(self._observed.kept_for(key)):
            if is_cluster_wide_of(found, key):
                await self._delete(CLUSTER_ROLE_BINDINGS, found)

    async def _delete(self, resource: Resource, found: Json) -> None:
        metadata = found["metadata"]
        body = msgspec.json.encode({"preconditions": {"uid": metadata["uid"]}})
        try:
            await self._api.delete(resource, metadata.get("namespace", ""), metadata["name"], body)
        except NotFoundError:
            return


async def apply(
    api: Api, resource: Resource, wanted: Json, subresource: str = "", *, manager: str = FIELD_MANAGER
) -> Json:
    """Apply an object in the operator's name, and give it as stored. Raises: ClientError."""
    metadata = wanted["metadata"]
    path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
    query: dict[str, Any] = {"fieldManager": manager, "force": "true"}
    answer = await api.call("PATCH", path, msgspec.json.encode(wanted), query=query, content_type=APPLY_PATCH)
    stored: Json = msgspec.json.decode(answer)
    return stored


def _dependents(done: Applied) -> tuple[str, ...]:
    """Give the kinds that are not applied after what went wrong before."""
    wrong = {kind for kind, _ in done.wrong}
    if "ServiceAccount" in wrong:
        return (*_RIGHTS, *_WITH_PODS)
    return _WITH_PODS if wrong.intersection(_NEEDED_BY_PODS) else ()


@contextmanager
def about(wanted: Json) -> Iterator[None]:
    """Put the object's name before the server's words, where a request about it fails."""
    try:
        yield
    except ClientError as error:
        said = error.message if isinstance(error, AnsweredError) else str(error)
        error.args = (f"{wanted['kind']} {wanted['metadata']['name']}: {said}",)
        raise


def _lacks_owner(kind: str, found: Json) -> bool:
    return kind == "ClusterRoleBinding" and not found["metadata"].get("ownerReferences")


def _mark(document: Json) -> str | None:
    """Give what an object says of what it was made of."""
    found: str | None = (document["metadata"].get("annotations") or {}).get(APPLIED)
    return found
