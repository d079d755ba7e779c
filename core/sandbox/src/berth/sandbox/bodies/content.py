"""From a request's body to a document: media types, YAML, unknown and ill-typed fields.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/{create,rest}.go (v1.36).
"""

from typing import Any, Final

import msgspec
import yaml

from berth.sandbox import schemas
from berth.sandbox.bodies import protobuf
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.request import JSON, ReceivedRequest
from berth.sandbox.store import Json, decode

YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
ACCEPTED: Final = f"{JSON}, {YAML}"
_GO_TYPES: Final = {
    "string": "string",
    "integer": "int64",
    "boolean": "bool",
    "object": "map",
    "number": "float64",
}


def media_type(request: ReceivedRequest) -> str:
    """Give the body's media type without its parameters."""
    return request.headers.get("content-type", JSON).partition(";")[0].strip() or JSON


def read_document(request: ReceivedRequest, kind: str) -> Json:
    """Decode the body.

    Raises: ApiError when it is in a format that is not read here, or malformed.
    """
    media = media_type(request)
    if media == PROTOBUF:
        return _read_protobuf(request.body)
    if media not in (JSON, YAML, "*/*", "text/plain"):
        raise ApiError.unsupported_media_type(ACCEPTED)
    if not request.body:
        raise ApiError.bad_request("the request body is empty")
    return parse(request.body, kind, is_yaml=media == YAML)


def _read_protobuf(body: bytes) -> Json:
    try:
        return protobuf.read(body)
    except protobuf.ProtobufError:
        raise ApiError.unsupported_media_type(ACCEPTED) from None


def parse(body: bytes, kind: str, *, is_yaml: bool = False) -> Json:
    """Decode JSON or YAML.

    Raises: ApiError when it is malformed or no object.
    """
    try:
        document = yaml.safe_load(body) if is_yaml else decode(body)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        text = f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
        raise ApiError.bad_request(f"{text}json parse error: {error}") from None
    if not isinstance(document, dict):
        raise ApiError.bad_request(f"the object provided is unrecognized (must be of type {kind})")
    return document


def read_typed(request: ReceivedRequest, resource: ServedResource) -> Json:
    """Decode the body as an object of the resource, without nulls and unknown fields.

    Raises: ApiError when a field has the wrong type, or is unknown and the client is strict about that.
    """
    document = read_document(request, resource.kind)
    return clean(request, resource, document, request.body if media_type(request) == JSON else None)


def clean(
    request: ReceivedRequest, resource: ServedResource, document: Json, body: bytes | None = None
) -> Json:
    """Check a document's fields against the resource's schema; `body` saves encoding it again.

    Raises: ApiError as read_typed.
    """
    if not resource.schema:
        return document
    try:
        schemas.checker(resource.schema).decode(body or msgspec.json.encode(document))
    except msgspec.MsgspecError:
        _explain(request, resource, document)
    if body is None or b"null" in body:
        drop_nulls(document)
    return document


def drop_nulls(node: Any) -> None:
    """Remove map entries that are null, as Go's decoder makes nothing of them."""
    if isinstance(node, dict):
        for key in [key for key, value in node.items() if value is None]:
            del node[key]
        for value in node.values():
            drop_nulls(value)
    elif isinstance(node, list):
        for value in node:
            drop_nulls(value)


def _explain(request: ReceivedRequest, resource: ServedResource, document: Json) -> None:
    unknown: list[str] = []
    what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
    problem = _walk(document, schemas.root(resource.schema), "", resource.kind, unknown)
    if problem:
        raise ApiError.bad_request(what + problem)
    report_unknown(request, unknown, what)


def report_unknown(request: ReceivedRequest, unknown: list[str], what: str) -> None:
    """Tell the client about unknown fields in the way it asked for: not at all, as warnings, or as an error.

    Raises: ApiError when fieldValidation is Strict.
    """
    mode = request.query.get("fieldValidation") or "Warn"
    texts = [f'unknown field "{path}"' for path in unknown]
    if texts and mode == "Strict":
        raise ApiError.bad_request(f"{what}strict decoding error: {', '.join(texts)}")
    if mode == "Warn":
        request.warnings += texts


def _walk(node: Any, schema: Json | None, path: str, owner: str, unknown: list[str]) -> str:
    """Prune unknown fields, noting them; give the first type error in Go's words, or nothing."""
    if schema is None or node is None or schemas.ref_name(schema) in schemas.OPAQUE:
        return ""
    resolved = schemas.resolve(schema)
    kind = schemas.type_of(resolved)
    if "oneOf" not in resolved and kind and not _fits(node, kind):
        field = f"{owner}.{path} of type {_go_type(schema, kind)}"
        return f"json: cannot unmarshal {_json_name(node)} into Go struct field {field}"
    if isinstance(node, list):
        found = (
            _walk(value, schemas.item(schema), f"{path}[{i}]", owner, unknown) for i, value in enumerate(node)
        )
        return next((text for text in found if text), "")
    if isinstance(node, dict):
        return _walk_map(node, resolved, path, _owner(schema, owner), unknown)
    return ""


def _walk_map(node: Json, schema: Json, path: str, owner: str, unknown: list[str]) -> str:
    properties = schema.get("properties")
    for key in list(node):
        here = f"{path}.{key}" if path else key
        if properties is not None and key not in properties:
            unknown.append(here)
            del node[key]
            continue
        problem = _walk(node[key], schemas.child(schema, key), here, owner, unknown)
        if problem:
            return problem
    return ""


def _fits(node: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(node, int) and not isinstance(node, bool)
    if kind == "number":
        return isinstance(node, int | float) and not isinstance(node, bool)
    return isinstance(node, {"string": str, "boolean": bool, "array": list, "object": dict}[kind])


def _json_name(node: Any) -> str:
    for types, name in ((bool, "bool"), ((int, float), "number"), (str, "string"), (list, "array")):
        if isinstance(node, types):
            return name
    return "object"


def _owner(schema: Json, owner: str) -> str:
    name = schemas.ref_name(schema)
    return name.rpartition(".")[2] if name else owner


def _go_type(schema: Json, kind: str) -> str:
    name = schemas.ref_name(schema)
    if name:
        return "v1." + name.rpartition(".")[2]
    if kind == "array":
        items = schemas.item(schema) or {}
        return "[]" + _go_type(items, schemas.type_of(schemas.resolve(items)))
    return "map[string]string" if kind == "object" else _GO_TYPES.get(kind, kind)
