"""The API: from a request to an answer. No sockets in it, and nothing in it waits.

    path ─▶ route ─▶ access ─▶ verb (rest.py, listing.py, patching.py, subresources.py) ─▶ view ─▶ answer

Source: staging/src/k8s.io/apiserver/pkg/endpoints (v1.36).
"""

from collections.abc import Callable
from typing import Final

import msgspec

from berth.config.releases.release import DEFAULT, Release
from berth.sandbox import reviews, subresources
from berth.sandbox.access import EVERYBODY, RequestAccess
from berth.sandbox.aggregation import Aggregation, FrontProxy
from berth.sandbox.attributes import RequestAttributes, SandboxUser, asked_of
from berth.sandbox.bodies import content
from berth.sandbox.custom_resources.crd import Definitions
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.catalogue import Catalogue
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.meta import Clock
from berth.sandbox.patches.patching import Patcher
from berth.sandbox.reading.discovery import Discovery
from berth.sandbox.reading.event_conversion import NEW_VERSION, to_core
from berth.sandbox.reading.listing import Lists, select
from berth.sandbox.reading.views import choose_view
from berth.sandbox.request import Answer, CompleteAnswer, ReceivedRequest, json_response
from berth.sandbox.rest import Deletion, RestStorage
from berth.sandbox.store import Json, SandboxStore, StoredObject

_READS: Final = ("GET", "HEAD")
_OWNERS: Final = b"ownerReferences"
_RBAC: Final = "rbac.authorization.k8s.io"


class Route(msgspec.Struct, frozen=True):
    """What a path points at."""

    resource: ServedResource
    namespace: str
    name: str
    subresource: str


Logs = Callable[[str, str], str]
"""What a container of a pod, by its key, has written."""


def no_logs(_key: str, _container: str) -> str:
    """Nothing: no container runs."""
    return ""


class SandboxApi:
    """Answers requests from the store."""

    def __init__(
        self,
        store: SandboxStore,
        clock: Clock,
        access: RequestAccess = EVERYBODY,
        *,
        logs: Logs = no_logs,
        front_proxy: FrontProxy | None = None,
        release: Release = DEFAULT,
    ) -> None:
        self.store = store
        self.catalogue = Catalogue(release)
        self.rest = RestStorage(store, self.catalogue, clock)
        self.discovery = Discovery(self.catalogue)
        self.definitions = Definitions(self.rest)
        self.aggregation = Aggregation(self.rest, front_proxy or FrontProxy())
        self.logs = logs
        self._lists = Lists(store)
        self._patcher = Patcher(self.rest)
        self._clock = clock
        self._access = access

    def handle(self, request: ReceivedRequest) -> Answer:
        """Answer a request; a declined one with a Status object."""
        try:
            return self._handle(request)
        except ApiError as error:
            return json_response(error.status(), error.code)

    def _handle(self, request: ReceivedRequest) -> Answer:
        user = self._access.user(request.headers)
        aggregated = self.aggregation.asked(request)
        if aggregated is not None:
            self._access.check(user, aggregated)
            return self.aggregation.answer(request, user)
        route = self._route(request.path)
        if route is None:
            self._access.check(user, RequestAttributes(request.method.lower(), path=request.path))
            return self.discovery.handle(request)
        self._authorize(request, route, user)
        if route.subresource:
            return self._subresource(request, route)
        if route.name:
            return self._object(request, route)
        return self._collection(request, route)

    def _authorize(self, request: ReceivedRequest, route: Route, user: SandboxUser) -> None:
        resource = route.resource
        asked = asked_of(request, resource, route.namespace, route.name, route.subresource)
        self._access.check(user, asked)
        if asked.resource == "resourceclaims/status" and asked.verb in ("update", "patch"):
            self._access.check(user, msgspec.structs.replace(asked, resource="resourceclaims/binding"))
        if request.method == "PATCH" and not route.subresource and self._creates(request, route):
            self._access.check(user, msgspec.structs.replace(asked, verb="create"))
        if resource.group == _RBAC and request.method in ("POST", "PUT", "PATCH"):
            self._access.check_grant(user, resource, route.namespace, self._as_written(request, route))
        if not route.subresource and self._changes_owners(request, route):
            self._check_owner_change(user, asked)

    def _changes_owners(self, request: ReceivedRequest, route: Route) -> bool:
        entry = self.rest.collection(route.resource).get(route.resource.key(route.namespace, route.name))
        if entry is None or request.method not in ("PUT", "PATCH"):
            return False
        if _OWNERS not in request.body and _OWNERS not in entry.body:
            return False
        before, after = entry.decode()["metadata"], self._as_written(request, route).get("metadata", {})
        if after.get("resourceVersion", "0") not in ("0", before["resourceVersion"]):
            return False  # a conflict, which comes before admission
        return (before.get("ownerReferences") or []) != (after.get("ownerReferences") or [])

    def _check_owner_change(self, user: SandboxUser, asked: RequestAttributes) -> None:
        """Refuse what the admission plugin OwnerReferencesPermissionEnforcement refuses.

        Who may say what an object goes with can delete it thereby.
        Source: plugin/pkg/admission/gc/gc_admission.go (v1.36).
        """
        if not self._access.allows(user, msgspec.structs.replace(asked, verb="delete")):
            why = f"cannot set an ownerRef on a resource you can't delete: {user.name}"
            raise ApiError.forbidden(asked.resource, asked.group, asked.name, why)

    def _creates(self, request: ReceivedRequest, route: Route) -> bool:
        key = route.resource.key(route.namespace, route.name)
        absent = self.rest.collection(route.resource).get(key) is None
        return absent and content.media_type(request) in self._patcher.APPLY_TYPES

    def _as_written(self, request: ReceivedRequest, route: Route) -> Json:
        """Give the object as the request would leave it."""
        if request.method != "PATCH":
            return content.read_document(request, route.resource.kind)
        entry = self.rest.collection(route.resource).get(route.resource.key(route.namespace, route.name))
        if content.media_type(request) in self._patcher.APPLY_TYPES:
            return self._patcher.apply(request, route.resource, entry, route.name, "")
        return self._patcher.patch(request, route.resource, entry) if entry is not None else {}

    def _route(self, path: str) -> Route | None:
        parts = path.strip("/").split("/")
        if parts[0] == "api" and len(parts) > 2:  # noqa: PLR2004 (api, version, and more)
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:  # noqa: PLR2004 (apis, group, version, and more)
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        namespace = ""
        # Of a namespace itself, only these two are subresources; anything else is a resource within it.
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):  # noqa: PLR2004
            namespace, rest = rest[1], rest[2:]
        resource = self.catalogue.get(group, version, rest[0])
        if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):  # noqa: PLR2004
            raise ApiError.no_such_resource()
        padded = [*rest, "", ""]
        return Route(resource, namespace, padded[1], padded[2])

    def _collection(self, request: ReceivedRequest, route: Route) -> Answer:
        if request.method in _READS:
            return self._list(request, route)
        if request.method == "POST":
            return self._create(request, route)
        if request.method == "DELETE" and "deletecollection" in route.resource.verbs:
            return self._delete_collection(request, route)
        raise ApiError.method_not_allowed()

    def _list(self, request: ReceivedRequest, route: Route) -> Answer:
        resource = route.resource
        if "list" not in resource.verbs:
            raise ApiError.method_not_allowed()
        accept = request.headers.get("accept", "")
        view = choose_view(resource, accept, request.query.get("includeObject", ""), self._clock)
        if request.flag("watch"):
            return self._lists.answer_watch(request, resource, route.namespace, view)
        return self._lists.answer_list(request, resource, route.namespace, view)

    def _create(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        resource = route.resource
        if "get" not in resource.verbs:
            return self._create_virtual(request, route)
        if resource.namespaced and not route.namespace:
            raise ApiError.bad_request("an empty namespace may not be set during creation")
        entry = self.create(request, resource, route.namespace, content.read_typed(request, resource))
        return self._answer(request, resource, entry, 201)

    def create(
        self, request: ReceivedRequest, resource: ServedResource, namespace: str, document: Json
    ) -> StoredObject:
        """Create an object from a decoded document."""
        if resource.group_version == NEW_VERSION:
            document, resource = self._core_event(document)
        if resource.custom is not None:
            document, resource = resource.custom.clean(request, document), resource.custom.stored
        entry = self.rest.create(resource, namespace, document, dry_run=request.dry_run)
        if not request.dry_run:
            self.definitions.changed(resource, entry)
        return entry

    def _core_event(self, document: Json) -> tuple[Json, ServedResource]:
        core = self.catalogue.get("", "v1", "events")
        assert core is not None
        return to_core(document), core

    def _create_virtual(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        if route.resource.plural == "bindings":
            document = content.read_document(request, "Binding")
            name = (document.get("metadata") or {}).get("name", "")
            return subresources.bind(self.rest, request, route.namespace, name, document)
        return reviews.review(request, route.resource, route.namespace, self._access)

    def _object(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        resource, method = route.resource, request.method
        if "get" not in resource.verbs:
            raise ApiError.method_not_allowed()
        if method in _READS:
            entry = self.rest.read(resource, route.namespace, route.name)
            return self._answer(request, resource, entry)
        if method == "PUT":
            return self._replace(request, route)
        if method == "PATCH":
            return self._patch(request, route)
        if method == "DELETE":
            return self._delete(request, route)
        raise ApiError.method_not_allowed()

    def _replace(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        resource = route.resource
        entry = self.rest.read(resource, route.namespace, route.name)
        document = content.read_typed(request, resource)
        wanted, found = (document.get("metadata") or {}).get("uid"), entry.decode()["metadata"]["uid"]
        if wanted and wanted != found:
            raise ApiError.precondition_failed(
                resource.plural, resource.group, entry.key, wanted=wanted, found=found
            )
        return self._update(request, route, entry, document)

    def _update(
        self,
        request: ReceivedRequest,
        route: Route,
        entry: StoredObject,
        document: Json,
        *,
        tracked: bool = False,
    ) -> CompleteAnswer:
        resource = stored = route.resource
        if resource.group_version == NEW_VERSION:
            document, stored = self._core_event(document)
        if resource.custom is not None:
            document, stored = resource.custom.clean(request, document), resource.custom.stored
        if not tracked:
            self._patcher.track(request, resource, entry, document, route.subresource)
        updated = self.rest.update(
            stored, entry, document, subresource=route.subresource, dry_run=request.dry_run
        )
        if not request.dry_run:
            self.definitions.changed(resource, updated)
        return self._answer(request, resource, updated)

    def _patch(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        resource = route.resource
        entry = self.rest.collection(resource).get(resource.key(route.namespace, route.name))
        if content.media_type(request) in self._patcher.APPLY_TYPES:
            return self._apply(request, route, entry)
        entry = self.rest.read(resource, route.namespace, route.name)
        return self._update(request, route, entry, self._patcher.patch(request, resource, entry))

    def _apply(self, request: ReceivedRequest, route: Route, entry: StoredObject | None) -> CompleteAnswer:
        resource = route.resource
        document = self._patcher.apply(request, resource, entry, route.name, route.subresource)
        if entry is not None:
            return self._update(request, route, entry, document, tracked=True)
        if route.subresource:
            raise ApiError.not_found(resource.plural, resource.group, route.name)
        if uid := document["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise ApiError.conflict(resource.plural, resource.group, route.name, why)
        # Unlike with POST: where nothing is stored there is no version to differ from.
        document["metadata"].pop("resourceVersion", None)
        created = self.create(request, resource, route.namespace, document)
        return self._answer(request, resource, created, 201)

    def _delete(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        resource = route.resource
        entry = self.rest.read(resource, route.namespace, route.name)
        last, gone = self.rest.delete(resource, entry, _deletion(request))
        self.definitions.changed(resource, last, gone=gone)
        if resource.returns_deleted or not gone:
            return self._answer(request, resource, last)
        details = {"name": route.name, "group": resource.group, "kind": resource.plural}
        details["uid"] = last.decode()["metadata"]["uid"]
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return json_response({**status, "details": {key: value for key, value in details.items() if value}})

    def _delete_collection(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        resource = route.resource
        collection = self.rest.collection(resource)
        entries = select(request, collection, resource, route.namespace)
        options = _deletion(request)
        for entry in entries:
            last, gone = self.rest.delete(resource, entry, options)
            self.definitions.changed(resource, last, gone=gone)
        view = choose_view(resource, "", "", self._clock)
        return CompleteAnswer(200, view.many(entries, {"resourceVersion": str(self.store.revision)}))

    def _subresource(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        resource, name = route.resource, route.subresource
        if name not in resource.subresources:
            raise ApiError.no_such_resource()
        if name in ("binding", "eviction"):
            if request.method != "POST":
                raise ApiError.method_not_allowed()
            act = subresources.bind if name == "binding" else subresources.evict
            document = content.read_document(request, name.capitalize())
            return act(self.rest, request, route.namespace, route.name, document)
        if name == "log":
            return self._log(request, route)
        if name == "token":
            return reviews.issue_token(self.rest, request, route.namespace, route.name, self._access)
        if name == "scale":
            return subresources.scale(self.rest, request, resource, route.namespace, route.name)
        if request.method not in (*_READS, "PUT", "PATCH"):
            raise ApiError.method_not_allowed()
        return self._object(request, route)

    def _log(self, request: ReceivedRequest, route: Route) -> CompleteAnswer:
        entry = self.rest.read(route.resource, route.namespace, route.name)
        text = self.logs(entry.key, request.query.get("container", ""))
        return CompleteAnswer(200, [text.encode()], "text/plain")

    def _answer(
        self, request: ReceivedRequest, resource: ServedResource, entry: StoredObject, status: int = 200
    ) -> CompleteAnswer:
        accept = request.headers.get("accept", "")
        view = choose_view(resource, accept, request.query.get("includeObject", ""), self._clock)
        return CompleteAnswer(status, [view.one(entry), b"\n"])


def _deletion(request: ReceivedRequest) -> Deletion:
    options: Json = content.read_document(request, "DeleteOptions") if request.body else {}
    preconditions = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    return Deletion(
        grace_seconds=None if grace is None else int(grace),
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=request.dry_run or bool(options.get("dryRun")),
    )
