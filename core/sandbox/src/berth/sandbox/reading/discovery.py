"""What is served, as clients ask for it: groups, resources, version, health, OpenAPI.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery, staging/src/k8s.io/api/apidiscovery/v2 (v1.36).
"""

from typing import Final

from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.catalogue import Catalogue
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.reading import openapi
from berth.sandbox.request import CompleteAnswer, ReceivedRequest, json_response
from berth.sandbox.store import Json

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_STATUS_VERBS: Final = ("get", "patch", "update")
_SUB_KINDS: Final = {
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "scale": ("autoscaling", "v1", "Scale", _STATUS_VERBS),
    "log": ("", "v1", "Pod", ("get",)),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
    "finalize": ("", "v1", "Namespace", ("update",)),
}


class Discovery:
    """Answers everything that is not about objects."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._openapi = openapi.Documents(catalogue)

    def handle(self, request: ReceivedRequest) -> CompleteAnswer:
        """Answer a request whose path names no resource.

        Raises: ApiError for what cannot be read. An unknown path is answered in plain text, or in words where
            servers of the release do so.
        """
        if request.method not in ("GET", "HEAD"):
            raise ApiError.method_not_allowed()
        parts = request.path.strip("/").split("/")
        if f"/{parts[0]}" in _HEALTH:
            return CompleteAnswer(200, [b"ok"], "text/plain; charset=utf-8")
        document = self._document(request, parts)
        if document is not None:
            return document
        if parts[0] == "apis" and self._catalogue.shape.puts_unknown_paths_into_words:
            raise ApiError.no_such_resource()
        return CompleteAnswer(404, [b"404 page not found\n"], "text/plain; charset=utf-8")

    def _document(self, request: ReceivedRequest, parts: list[str]) -> CompleteAnswer | None:
        answer: CompleteAnswer | None = None
        match parts:
            case ["version"]:
                answer = json_response(version_info(self._catalogue.version))
            case ["openapi", *rest]:
                answer = self._openapi.handle(request, rest)
            case ["api" | "apis" as root]:
                answer = self._roots(request, root)
            case ["api", version]:
                answer = self._resource_list("", version)
            case ["apis", group]:
                answer = self._group(group)
            case ["apis", group, version]:
                answer = self._resource_list(group, version)
            case [""]:
                answer = json_response({"paths": self._paths()})
        return answer

    def _paths(self) -> list[str]:
        groups = [group for group in self._catalogue.groups() if group]
        return [
            "/api",
            "/api/v1",
            "/apis",
            *(f"/apis/{group}" for group in groups),
            *_HEALTH,
            "/openapi/v2",
            "/openapi/v3",
            "/version",
        ]

    def _roots(self, request: ReceivedRequest, root: str) -> CompleteAnswer:
        accept = request.headers.get("accept", "").replace(" ", "")
        if "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" in accept.split(","):
            return self._aggregated(root)
        if _AGGREGATED in accept:
            return self._aggregated(root)
        if root == "api":
            server = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}
            addresses = {"serverAddressByClientCIDRs": [server]}
            return json_response({"kind": "APIVersions", "versions": ["v1"], **addresses})
        groups = [
            _group_document(name, versions) for name, versions in self._catalogue.groups().items() if name
        ]
        return json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    def _aggregated(self, root: str) -> CompleteAnswer:
        items = []
        for group, versions in self._catalogue.groups().items():
            if (group == "") != (root == "api"):
                continue
            listed = [
                {"version": one, "resources": self._aggregated_resources(group, one), "freshness": "Current"}
                for one in versions
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": listed})
        document = {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }
        return json_response(document, content_type=_AGGREGATED)

    def _aggregated_resources(self, group: str, version: str) -> list[Json]:
        return [_aggregated_resource(one) for one in self._served(group, version)]

    def _served(self, group: str, version: str) -> list[ServedResource]:
        return [one for one in self._catalogue.all() if one.group == group and one.version == version]

    def _group(self, group: str) -> CompleteAnswer | None:
        versions = self._catalogue.groups().get(group)
        if not versions:
            return None
        return json_response({"kind": "APIGroup", "apiVersion": "v1", **_group_document(group, versions)})

    def _resource_list(self, group: str, version: str) -> CompleteAnswer | None:
        served = self._served(group, version)
        if not served:
            return None
        resources: list[Json] = []
        for one in served:
            resources += _legacy_resources(one)
        document = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": served[0].group_version,
            "resources": resources,
        }
        return json_response(document)


def version_info(version: str) -> Json:
    """Give the document under /version of a server of that version."""
    major, minor, _ = version.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{version}+berth-sandbox",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def _group_document(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _legacy_resources(resource: ServedResource) -> list[Json]:
    main: Json = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    return [main, *(_legacy_subresource(resource, name) for name in resource.subresources)]


def _legacy_subresource(resource: ServedResource, name: str) -> Json:
    group, version, kind, verbs = _subresource_kind(resource, name)
    document: Json = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if (group, version) != (resource.group, resource.version):
        document |= {"group": group, "version": version}
    return {**document, "kind": kind, "verbs": list(verbs)}


def _subresource_kind(resource: ServedResource, name: str) -> tuple[str, str, str, tuple[str, ...]]:
    return _SUB_KINDS.get(name, (resource.group, resource.version, resource.kind, _STATUS_VERBS))


def _aggregated_resource(resource: ServedResource) -> Json:
    document: Json = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        document["shortNames"] = list(resource.short_names)
    if resource.categories:
        document["categories"] = list(resource.categories)
    if resource.subresources:
        document["subresources"] = [_aggregated_subresource(resource, name) for name in resource.subresources]
    return document


def _aggregated_subresource(resource: ServedResource, name: str) -> Json:
    group, version, kind, verbs = _subresource_kind(resource, name)
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": list(verbs),
    }
