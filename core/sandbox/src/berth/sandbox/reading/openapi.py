"""OpenAPI documents made from the published schemas: what `kubectl explain` and client-side validation read.

Source: staging/src/k8s.io/kube-openapi; the shapes kubectl looks for are in kubectl/pkg/explain/v2 and
cli-runtime/pkg/resource/query_param_verifier_v3.go (v1.36).
"""

import hashlib
from typing import Any, Final

from berth.sandbox import schemas
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.catalogue import Catalogue
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.reading import openapi_protobuf
from berth.sandbox.request import JSON, CompleteAnswer, ReceivedRequest, json_response
from berth.sandbox.store import Json, encode

_GVK: Final = "x-kubernetes-group-version-kind"
_PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


class Documents:
    """The OpenAPI documents of all that is served, encoded when first asked for."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._generation = -1
        self._encoded: dict[str, bytes] = {}

    def handle(self, request: ReceivedRequest, parts: list[str]) -> CompleteAnswer | None:
        """Answer a request below /openapi; None for an unknown path."""
        if self._generation != self._catalogue.generation:
            self._generation = self._catalogue.generation
            self._encoded.clear()
        if parts == ["v2"]:
            return self._v2(request)
        if parts == ["v3"]:
            return json_response({"paths": {path: self._link(path) for path in self._group_paths()}})
        path = "/".join(parts[1:])
        if parts[:1] == ["v3"] and path in self._group_paths():
            return CompleteAnswer(200, [self._v3(path)], JSON)
        return None

    def _v2(self, request: ReceivedRequest) -> CompleteAnswer:
        media_type = _chosen(request.headers.get("accept", ""))
        if media_type not in self._encoded:
            document = _swagger(self._described(), self._catalogue.version)
            write = encode if media_type == JSON else openapi_protobuf.write
            self._encoded[media_type] = write(document)
        return CompleteAnswer(200, [self._encoded[media_type]], media_type)

    def _group_paths(self) -> list[str]:
        return [
            f"apis/{group}/{version}" if group else f"api/{version}"
            for group, version in dict.fromkeys((one.group, one.version) for one in self._described())
        ]

    def _described(self) -> list[ServedResource]:
        return [one for one in self._catalogue.all() if one.is_described]

    def _link(self, path: str) -> Json:
        digest = (
            hashlib.sha256(f"{path} {self._generation} {self._catalogue.version}".encode())
            .hexdigest()[:32]
            .upper()
        )
        return {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}

    def _v3(self, path: str) -> bytes:
        if path not in self._encoded:
            *_, version = path.split("/")
            group = path.split("/")[1] if path.startswith("apis/") else ""
            served = [one for one in self._described() if (one.group, one.version) == (group, version)]
            self._encoded[path] = encode(_document_v3(served, self._catalogue.version))
        return self._encoded[path]


def _chosen(accept: str) -> str:
    """The media type of the answer, the first one that is accepted. Raises: ApiError where there is none."""
    for one in accept.split(","):
        media_type = one.partition(";")[0].strip()
        if media_type in openapi_protobuf.ACCEPTED:
            return openapi_protobuf.MEDIA_TYPE
        if media_type in ("", "*/*", "application/*", JSON):
            return JSON
    raise ApiError.not_acceptable()


def _document_v3(served: list[ServedResource], version: str) -> Json:
    components = _reachable(served, "#/components/schemas/")
    paths: Json = {}
    for resource in served:
        paths |= _paths(resource, "#/components/schemas/", body_v3=True)
    info = {"title": "Kubernetes", "version": f"v{version}"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": components}}


def _swagger(served: list[ServedResource], version: str) -> Json:
    paths: Json = {}
    for resource in served:
        paths |= _paths(resource, "#/definitions/", body_v3=False)
    info = {"title": "Kubernetes", "version": f"v{version}"}
    definitions = _reachable(served, "#/definitions/")
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions}


def schema_name(resource: ServedResource) -> str:
    """Give the name under which the resource's type stands in the documents."""
    if resource.schema:
        return resource.schema
    backwards = ".".join(reversed(resource.group.split(".")))
    return f"{backwards}.{resource.version}.{resource.kind}"


def _paths(resource: ServedResource, prefix: str, *, body_v3: bool) -> Json:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    listed, named = f"{base}{scope}/{resource.plural}", f"{base}{scope}/{resource.plural}/{{name}}"
    reference = {"$ref": prefix + schema_name(resource)}
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}

    # kubectl sends the strategic kind wherever the document lists it; custom resources know no merge keys.
    patches = _PATCH_TYPES if resource.schema else _PATCH_TYPES[:-1]

    def operation(action: str) -> Json:
        return _operation(action, kind, reference, patches, body_v3=body_v3)

    if "get" not in resource.verbs:
        return {listed: {"post": operation("post")}}
    return {
        listed: {
            "get": operation("list"),
            "post": operation("post"),
            "delete": operation("deletecollection"),
        },
        named: {verb: operation(verb) for verb in ("get", "put", "patch", "delete")},
    }


def _operation(action: str, kind: Json, reference: Json, patches: tuple[str, ...], *, body_v3: bool) -> Json:
    parameters = []
    if action in ("post", "put", "patch"):
        for name in _PARAMETERS:
            parameter: Json = {"name": name, "in": "query", "description": name}
            typed = {"type": "boolean" if name == "force" else "string"}
            parameters.append({**parameter, **({"schema": typed} if body_v3 else typed)})
    found: Json = {
        "description": f"{action} {kind['kind']}",
        "parameters": parameters,
        "responses": {
            "200": _content(reference, (JSON,)) if body_v3 else {"description": "OK", "schema": reference}
        },
        "x-kubernetes-action": action,
        _GVK: kind,
    }
    if body_v3 and action in ("post", "put"):
        found["requestBody"] = _content(reference, ("*/*",))
    if body_v3 and action == "patch":
        found["requestBody"] = _content({"type": "object"}, patches)
    return found


def _content(schema: Json, media_types: tuple[str, ...]) -> Json:
    return {"description": "OK", "content": {media: {"schema": schema} for media in media_types}}


def _reachable(served: list[ServedResource], prefix: str) -> dict[str, Json]:
    """Collect the types of these resources and all that they refer to."""
    found: dict[str, Json] = {}
    pending = [schemas.ref_name(schemas.root(one.schema)) for one in served if one.schema]
    pending += [
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    ]
    for one in served:
        if one.custom is not None:
            found[schema_name(one)] = one.custom.published(prefix)
            pending.append("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    while pending:
        name = pending.pop()
        if name and name not in found and name in schemas.definitions():
            found[name] = _publish(schemas.definitions()[name], prefix, pending)
    return found


def _publish(schema: Any, prefix: str, pending: list[str | None]) -> Any:
    """Undo what the validating form of the schemas added: nulls, and alternatives for quantities."""
    if isinstance(schema, list):
        return [_publish(one, prefix, pending) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "oneOf" in schema and "properties" not in schema:
        return {**{key: value for key, value in schema.items() if key != "oneOf"}, **_alternative(schema)}
    result: Json = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            pending.append(schemas.ref_name(schema))
            result[key] = prefix + value.rpartition("/")[2]
        elif key == "type" and isinstance(value, list):
            result[key] = schemas.type_of(schema)
        elif key in ("properties", "patternProperties") and isinstance(value, dict):
            result[key] = {name: _publish(one, prefix, pending) for name, one in value.items()}
        elif key != "enum":
            # The validating form pins apiVersion and kind with enums; the published one leaves them open.
            result[key] = _publish(value, prefix, pending)
    if "$ref" in result and prefix.startswith("#/components"):
        # OpenAPI 3.0 ignores whatever stands beside a reference.
        rest = {key: value for key, value in result.items() if key != "$ref"}
        return {**rest, "allOf": [{"$ref": result["$ref"]}], "default": {}} if rest else result
    return result


def _alternative(schema: Json) -> Json:
    integer = any(schemas.type_of(one) == "integer" for one in schema["oneOf"])
    return {"type": "string", "format": "int-or-string"} if integer else {"type": "string"}
