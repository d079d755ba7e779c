"""Reading and writing objects: what every resource has in common. No HTTP in it.

    create ─▶ metadata ─▶ strategy.prepare_create ─▶ validate ─▶ store
    update ─▶ preconditions ─▶ strategy.prepare_update (or prepare_status) ─▶ validate ─▶ store
    delete ─▶ preconditions ─▶ grace period and finalizers ─▶ mark, or remove

Source: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go and pkg/registry/rest (v1.36).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from berth.sandbox import meta
from berth.sandbox.errors import ApiError, Cause, forbidden_field, invalid_value
from berth.sandbox.kinds.catalogue import Catalogue
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.kinds.strategies import DEFAULT, STRATEGIES
from berth.sandbox.kinds.strategy import Context, RestStrategy
from berth.sandbox.store import Collection, Json, SandboxStore, StoredObject, encode

MODIFIED_TEXT = "the object has been modified; please apply your changes to the latest version and try again"
_NAME_TRIES = 8
# What an update may not change, whatever it sends.
_FIXED = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


class Deletion(msgspec.Struct, frozen=True):
    """The options of one deletion."""

    grace_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


class RestStorage:
    """The objects of all resources, written under the API's rules."""

    def __init__(self, store: SandboxStore, catalogue: Catalogue, clock: meta.Clock) -> None:
        self.store = store
        self.catalogue = catalogue
        self.clock = clock
        self._contexts: dict[ServedResource, Context] = {}

    def collection(self, resource: ServedResource) -> Collection:
        """Give the stored objects of the resource."""
        return self.store.collection(resource.store_name)

    def now(self) -> str:
        """Give the time as objects carry it."""
        return meta.timestamp(self.clock())

    def read(self, resource: ServedResource, namespace: str, name: str) -> StoredObject:
        """Give one object.

        Raises: ApiError when there is none.
        """
        entry = self.collection(resource).get(resource.key(namespace, name))
        if entry is None:
            raise ApiError.not_found(resource.plural, resource.group, name)
        return entry

    def create(
        self,
        resource: ServedResource,
        namespace: str,
        document: Json,
        *,
        dry_run: bool = False,
        keep_status: bool = False,
    ) -> StoredObject:
        """Store a new object; the document is changed in place.

        Raises: ApiError when it is invalid, exists already, or its namespace does not.
        """
        strategy, context = self._strategy(resource, keep_status=keep_status)
        document = self._typed(resource, document)
        metadata = self._new_metadata(resource, namespace, document)
        collection = self.collection(resource)
        key = resource.key(namespace, metadata.get("name", ""))
        if resource.namespaced:
            self._check_namespace(resource, namespace, metadata.get("name", ""))
        if resource.has_status and not keep_status and not strategy.keeps_status_on_create:
            document.pop("status", None)
        strategy.prepare_create(document, context)
        causes = meta.check_metadata(metadata, any_name=strategy.any_name, label_name=strategy.label_name)
        self._raise_invalid(resource, document, causes + strategy.validate(document))
        document["metadata"] = meta.ordered(metadata)
        if collection.get(key) is not None:
            raise ApiError.already_exists(resource.plural, resource.group, metadata["name"])
        return _preview(key, document) if dry_run else collection.put(key, document)

    def update(
        self,
        resource: ServedResource,
        entry: StoredObject,
        document: Json,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> StoredObject:
        """Replace an object, or what the subresource is for; an update that changes nothing is not stored.

        Raises: ApiError when it is invalid, or was made from another revision.
        """
        strategy, context = self._strategy(resource)
        old = entry.decode()
        new = self._typed(resource, document)
        self._keep_metadata(resource, new, old)
        if subresource == "status":
            new = {**old, "metadata": new["metadata"], "status": new.get("status") or {}}
            strategy.prepare_status(new, old, context)
        elif subresource == "resize":
            strategy.prepare_resize(new, old)
        else:
            if resource.has_status:
                _carry(new, old, "status")
            strategy.prepare_update(new, old, context)
        causes = meta.check_metadata(
            new["metadata"], any_name=strategy.any_name, label_name=strategy.label_name
        )
        causes += _check_finalizers(new["metadata"], old["metadata"])
        changes = strategy.validate_resize if subresource == "resize" else strategy.validate_update
        self._raise_invalid(resource, new, causes + strategy.validate(new) + changes(new, old))
        return self.store_changed(resource, entry, new, old, dry_run=dry_run)

    def store_changed(
        self, resource: ServedResource, entry: StoredObject, new: Json, old: Json, *, dry_run: bool = False
    ) -> StoredObject:
        """Store the new state of an object, or remove it if nothing holds it any more."""
        metadata = new["metadata"] = meta.ordered(new["metadata"])
        if metadata == old["metadata"] and new == old:
            return entry
        if resource.generation and _without(new) != _without(old):
            metadata["generation"] = metadata.get("generation", 1) + 1
        if dry_run:
            return _preview(entry.key, new)
        collection = self.collection(resource)
        if _may_go(metadata):
            return collection.delete(entry.key, new)
        return collection.put(entry.key, new)

    def change(
        self, resource: ServedResource, namespace: str, name: str, edit: Callable[[Json], Any]
    ) -> StoredObject:
        """Edit a stored object in place, without strategy and validation: for the server's own writes.

        Raises: ApiError when there is no such object.
        """
        entry = self.read(resource, namespace, name)
        new = entry.decode()
        edit(new)
        return self.store_changed(resource, entry, new, entry.decode())

    def delete(
        self, resource: ServedResource, entry: StoredObject, options: Deletion
    ) -> tuple[StoredObject, bool]:
        """Delete an object, or begin to; says also whether it is gone.

        Raises: ApiError when a precondition does not hold.
        """
        document = entry.decode()
        metadata = document["metadata"]
        _check_deletion(resource, metadata, options)
        grace = _grace_seconds(resource, document, options)
        goes = grace == 0 and not metadata.get("finalizers")
        if goes and not _is_graceful(resource):
            return entry if options.dry_run else self.collection(resource).delete(entry.key, document), True
        # A pod shows that it is being deleted before it goes, even where it goes at once.
        marked = self._begin_deletion(resource, entry, document, grace, dry_run=options.dry_run)
        if goes and not options.dry_run:
            return self.collection(resource).delete(entry.key, marked.decode()), True
        return marked, goes

    def _begin_deletion(
        self, resource: ServedResource, entry: StoredObject, document: Json, grace: int, *, dry_run: bool
    ) -> StoredObject:
        metadata = document["metadata"]
        pending = metadata.get("deletionGracePeriodSeconds")
        begun = bool(metadata.get("deletionTimestamp"))
        if begun and (pending is None or pending <= grace):
            return entry
        metadata["deletionTimestamp"] = meta.timestamp(self.clock() + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if not begun and resource.generation and "generation" in metadata:
            metadata["generation"] += 1
        if resource.plural == "namespaces" and not resource.group:
            document["status"] = {**document.get("status", {}), "phase": "Terminating"}
        document["metadata"] = meta.ordered(metadata)
        return (
            _preview(entry.key, document) if dry_run else self.collection(resource).put(entry.key, document)
        )

    def _strategy(
        self, resource: ServedResource, *, keep_status: bool = False
    ) -> tuple[RestStrategy, Context]:
        context = self._contexts.get(resource)
        if context is None:
            context = self._contexts[resource] = Context(self.store, resource, self.now)
        if keep_status:
            context = msgspec.structs.replace(context, keep_status=True)
        if resource.custom is not None:
            custom: RestStrategy = resource.custom.strategy
            return custom, context
        return STRATEGIES.get(resource.store_name, DEFAULT), context

    def _typed(self, resource: ServedResource, document: Json) -> Json:
        """Put kind and apiVersion first, as encoded objects have them."""
        kind, version = document.get("kind"), document.get("apiVersion")
        if (kind and kind != resource.kind) or (version and version != resource.group_version):
            group_version = resource.group_version
            raise ApiError.bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind}): no kind "
                f'"{kind}" is registered for version "{version or group_version}"'
            )
        metadata = document.get("metadata") or {}
        return {
            "kind": resource.kind,
            "apiVersion": resource.group_version,
            "metadata": dict(metadata),
            **{
                key: value for key, value in document.items() if key not in ("kind", "apiVersion", "metadata")
            },
        }

    def _new_metadata(self, resource: ServedResource, namespace: str, document: Json) -> Json:
        metadata: Json = document["metadata"]
        if metadata.pop("resourceVersion", None):
            raise ApiError.bad_request("resourceVersion should not be set on objects to be created")
        self._place(resource, metadata, namespace)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._free_name(resource, namespace, metadata["generateName"])
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(field, None)
        metadata["uid"] = meta.new_uid()
        metadata["creationTimestamp"] = self.now()
        metadata["generation"] = 1 if resource.generation else None
        # Where resourceVersion stands among the fields; the store sets its value.
        metadata["resourceVersion"] = "0"
        return metadata

    def _free_name(self, resource: ServedResource, namespace: str, prefix: str) -> str:
        """Make a name that no object has; after as many tries as a real API server's the last one.

        Source: apiserver pkg/registry/generic/registry/store.go createWithGenerateNameRetries (v1.36).
        """
        collection, name = self.collection(resource), ""
        for _ in range(_NAME_TRIES):
            name = meta.generated_name(prefix)
            if collection.get(resource.key(namespace, name)) is None:
                break
        return name

    def _place(self, resource: ServedResource, metadata: Json, namespace: str) -> None:
        if not resource.namespaced:
            if metadata.pop("namespace", None):
                raise ApiError.bad_request("namespace not allowed on this type")
            return
        if metadata.get("namespace", namespace) != namespace:
            raise ApiError.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = namespace

    def _check_namespace(self, resource: ServedResource, namespace: str, name: str) -> None:
        entry = self.store.collection("namespaces").get(namespace)
        if entry is None:
            raise ApiError.not_found("namespaces", "", namespace)
        if b'"phase":"Terminating"' in entry.body:
            text = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise ApiError.forbidden(resource.plural, resource.group, name, text)

    def _keep_metadata(self, resource: ServedResource, new: Json, old: Json) -> None:
        metadata, before = new["metadata"], old["metadata"]
        name = before["name"]
        if metadata.get("name", name) != name:
            raise ApiError.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        if metadata.get("namespace") and metadata["namespace"] != before.get("namespace"):
            raise ApiError.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        version = metadata.get("resourceVersion") or "0"
        if version not in ("0", before["resourceVersion"]):
            raise ApiError.conflict(resource.plural, resource.group, name, MODIFIED_TEXT)
        if metadata.get("uid", before["uid"]) != before["uid"]:
            wrong = invalid_value("metadata.uid", metadata["uid"], "field is immutable")
            self._raise_invalid(resource, old, [wrong])
        for field in _FIXED:
            _carry(metadata, before, field)
        metadata["resourceVersion"] = before["resourceVersion"]
        if "managedFields" not in metadata:
            _carry(metadata, before, "managedFields")

    def _raise_invalid(self, resource: ServedResource, document: Json, causes: list[Cause]) -> None:
        if causes:
            raise ApiError.invalid(
                resource.kind, resource.group, document["metadata"].get("name", ""), causes
            )


def _check_deletion(resource: ServedResource, metadata: Json, options: Deletion) -> None:
    for label, wanted, found, why in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], "modified"),
    ):
        if wanted and wanted != found:
            text = (
                f"the {label} in the precondition ({wanted}) does not match the {label} in record ({found}). "
                f"The object might have been {why}"
            )
            raise ApiError.conflict(resource.kind, resource.group, metadata["name"], text)


def _check_finalizers(metadata: Json, before: Json) -> list[Cause]:
    added = set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ())
    if not added or not before.get("deletionTimestamp"):
        return []
    listed = ", ".join(f'"{name}"' for name in sorted(added))
    text = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return [forbidden_field("metadata.finalizers", text)]


def _is_graceful(resource: ServedResource) -> bool:
    return resource.plural == "pods" and not resource.group


def _grace_seconds(resource: ServedResource, document: Json, options: Deletion) -> int:
    if resource.plural == "namespaces" and not resource.group:
        # A namespace goes when it is empty; namespaces.py sees to that.
        return 0 if document.get("status", {}).get("phase") == "Terminating" else 1
    if not _is_graceful(resource):
        return 0
    finished = document.get("status", {}).get("phase") in ("Succeeded", "Failed")
    if finished or not document["spec"].get("nodeName"):
        return 0
    if options.grace_seconds is not None:
        return max(0, options.grace_seconds)
    return int(document["spec"].get("terminationGracePeriodSeconds") or 0)


def _may_go(metadata: Json) -> bool:
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return bool(metadata.get("deletionTimestamp")) and not held


def _preview(key: str, document: Json) -> StoredObject:
    return StoredObject(key, 0, encode(document))


def _carry(new: Json, old: Json, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _without(document: Json) -> Json:
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}
