"""What the group serves, as clients ask for it: groups, resources, OpenAPI.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery, staging/src/k8s.io/api/apidiscovery/v2 (v1.36).
"""

import hashlib

import msgspec

from berth.aggregated_api.kinds import GROUP, GROUP_VERSION, KINDS, ROOT, VERSION, ExplainKind, Json

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_VERSIONS = [{"groupVersion": GROUP_VERSION, "version": VERSION}]
_GROUP: Json = {"name": GROUP, "versions": _VERSIONS, "preferredVersion": _VERSIONS[0]}
API_GROUP: Json = {"kind": "APIGroup", "apiVersion": "v1", **_GROUP}
API_GROUPS: Json = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]}
API_RESOURCES: Json = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": GROUP_VERSION,
    "resources": [
        {
            "name": kind.resource,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.name,
            "verbs": ["get"],
        }
        for kind in KINDS
    ],
}


def _group_version_kind(kind: ExplainKind) -> Json:
    return {"group": GROUP, "version": VERSION, "kind": kind.name}


AGGREGATED_GROUPS: Json = {
    "kind": "APIGroupDiscoveryList",
    "apiVersion": "apidiscovery.k8s.io/v2",
    "metadata": {},
    "items": [
        {
            "metadata": {"name": GROUP},
            "versions": [
                {
                    "version": VERSION,
                    "resources": [
                        {
                            "resource": kind.resource,
                            "responseKind": _group_version_kind(kind),
                            "scope": "Namespaced" if kind.namespaced else "Cluster",
                            "singularResource": kind.singular,
                            "verbs": ["get"],
                        }
                        for kind in KINDS
                    ],
                    "freshness": "Current",
                }
            ],
        }
    ],
}

_INFO: Json = {"title": "Berth explanations", "version": VERSION}


def _schema_name(kind: ExplainKind) -> str:
    return f"dev.berth.explain.{VERSION}.{kind.name}"


def _schema(kind: ExplainKind) -> Json:
    # What a document holds is docs/explain.md's: clients that validate by schema take all of it.
    return {
        "type": "object",
        "description": f"{kind.about} It is made when it is asked for.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
        },
        "x-kubernetes-group-version-kind": [_group_version_kind(kind)],
    }


def _operations(kind: ExplainKind) -> Json:
    schema = {"$ref": f"#/components/schemas/{_schema_name(kind)}"}
    return {
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in (("namespace", "name") if kind.namespaced else ("name",))
        ],
        "get": {
            "operationId": f"read{kind.name}",
            "x-kubernetes-action": "get",
            "x-kubernetes-group-version-kind": _group_version_kind(kind),
            "responses": {
                "200": {"description": "OK", "content": {"application/json": {"schema": schema}}},
            },
        },
    }


_SCHEMAS = {_schema_name(kind): _schema(kind) for kind in KINDS}
OPENAPI_V3_PATH = f"/openapi/v3{ROOT}"
OPENAPI_V3: Json = {
    "openapi": "3.0.0",
    "info": _INFO,
    "paths": {kind.template: _operations(kind) for kind in KINDS},
    "components": {"schemas": _SCHEMAS},
}
_HASH = hashlib.sha256(msgspec.json.encode(OPENAPI_V3)).hexdigest().upper()
OPENAPI_V3_INDEX: Json = {
    "paths": {ROOT.removeprefix("/"): {"serverRelativeURL": f"{OPENAPI_V3_PATH}?hash={_HASH}"}}
}
OPENAPI_V2: Json = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": _SCHEMAS}

DOCUMENTS: dict[str, Json] = {
    "/apis": API_GROUPS,
    f"/apis/{GROUP}": API_GROUP,
    ROOT: API_RESOURCES,
    "/openapi/v2": OPENAPI_V2,
    "/openapi/v3": OPENAPI_V3_INDEX,
    OPENAPI_V3_PATH: OPENAPI_V3,
}
"""By path."""


def wants_aggregated(accept: str) -> bool:
    """Whether a client of /apis asks for groups and resources in one document."""
    return any(AGGREGATED in kind.replace(" ", "") for kind in accept.split(","))


def wants_table(accept: str) -> bool:
    """Whether the client's first choice is a Table, as `kubectl get` asks for."""
    first = accept.split(",", maxsplit=1)[0].replace(" ", "").split(";")
    return first[0] == "application/json" and {"as=Table", "v=v1", "g=meta.k8s.io"} <= set(first[1:])
