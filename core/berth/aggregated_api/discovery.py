"""What the group serves, as clients ask for it: groups, resources, OpenAPI.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/discovery, staging/src/k8s.io/api/apidiscovery/v2 (v1.36).
"""

import hashlib
from typing import Any

import msgspec

GROUP = "explain.berth.dev"
VERSION = "v1alpha1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{GROUP_VERSION}"
RESOURCE = "podexplanations"
SINGULAR = "podexplanation"
KIND = "Explanation"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Json = dict[str, Any]

_VERSIONS = [{"groupVersion": GROUP_VERSION, "version": VERSION}]
_GROUP: Json = {"name": GROUP, "versions": _VERSIONS, "preferredVersion": _VERSIONS[0]}
API_GROUP: Json = {"kind": "APIGroup", "apiVersion": "v1", **_GROUP}
API_GROUPS: Json = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]}
API_RESOURCES: Json = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": GROUP_VERSION,
    "resources": [
        {"name": RESOURCE, "singularName": SINGULAR, "namespaced": True, "kind": KIND, "verbs": ["get"]}
    ],
}
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
                            "resource": RESOURCE,
                            "responseKind": {"group": GROUP, "version": VERSION, "kind": KIND},
                            "scope": "Namespaced",
                            "singularResource": SINGULAR,
                            "verbs": ["get"],
                        }
                    ],
                    "freshness": "Current",
                }
            ],
        }
    ],
}

_INFO: Json = {"title": "Berth explanations", "version": VERSION}
_SCHEMA_NAME = f"dev.berth.explain.{VERSION}.{KIND}"
# What an explanation holds is docs/explain.md's: clients that validate by schema take all of it.
_SCHEMA: Json = {
    "type": "object",
    "description": "Why a pod is on its node, or on none. It is made when it is asked for.",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    },
    "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": KIND}],
}
_NAMED = ("namespace", "name")
OPENAPI_V3_PATH = f"/openapi/v3{ROOT}"
OPENAPI_V3: Json = {
    "openapi": "3.0.0",
    "info": _INFO,
    "paths": {
        f"{ROOT}/namespaces/{{namespace}}/{RESOURCE}/{{name}}": {
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in _NAMED
            ],
            "get": {
                "operationId": "readPodExplanation",
                "x-kubernetes-action": "get",
                "x-kubernetes-group-version-kind": _SCHEMA["x-kubernetes-group-version-kind"][0],
                "responses": {
                    "200": {
                        "description": "OK",
                        "content": {
                            "application/json": {"schema": {"$ref": f"#/components/schemas/{_SCHEMA_NAME}"}}
                        },
                    }
                },
            },
        }
    },
    "components": {"schemas": {_SCHEMA_NAME: _SCHEMA}},
}
_HASH = hashlib.sha256(msgspec.json.encode(OPENAPI_V3)).hexdigest().upper()
OPENAPI_V3_INDEX: Json = {
    "paths": {ROOT.removeprefix("/"): {"serverRelativeURL": f"{OPENAPI_V3_PATH}?hash={_HASH}"}}
}
OPENAPI_V2: Json = {"swagger": "2.0", "info": _INFO, "paths": {}, "definitions": {_SCHEMA_NAME: _SCHEMA}}

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
