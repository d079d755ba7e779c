"""CustomResourceDefinitions: a definition that is written makes its resources served.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go and
pkg/controller/{establish,status,finalizer} (v1.36).
"""

from typing import Any, Final

from berth.sandbox import schemas
from berth.sandbox.bodies.content import report_unknown
from berth.sandbox.custom_resources.json_path import find
from berth.sandbox.errors import Cause
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.kinds.strategy import RestStrategy
from berth.sandbox.reading.tables import AGE, NAME, Cell, PrinterColumn, Table, since
from berth.sandbox.request import ReceivedRequest
from berth.sandbox.rest import Deletion, RestStorage
from berth.sandbox.store import Json, StoredObject, encode
from berth.sandbox.structural_schemas import structural_schema
from berth.sandbox.structural_schemas.cel_rules import check_rules

_PLURAL: Final = "customresourcedefinitions"
_HEAD: Final = ("apiVersion", "kind", "metadata")
# The resourceVersion of an object that is about to be created.
_NEW: Final = "0"
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class CustomKind:
    """What a definition says about one version of its kind."""

    def __init__(self, version: Json) -> None:
        given: Json = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self.structural = given
        self.schema: Json = {
            **given,
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                **given.get("properties", {}),
                "metadata": schemas.root(_OBJECT_META),
            },
        }
        self.table = _table(version.get("additionalPrinterColumns") or [])
        self.strategy: RestStrategy = CustomStrategy(given)
        self.stored: ServedResource
        self.resource: ServedResource

    def clean(self, request: ReceivedRequest, document: Json) -> Json:
        """Prune and default a document, and give it in the version in which it is stored.

        Raises: ApiError when it has unknown fields and the client is strict about them.
        """
        unknown: list[str] = []
        rest = {key: value for key, value in document.items() if key not in _HEAD}
        structural_schema.prune(rest, self.structural, "", unknown)
        resource = self.resource
        what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        report_unknown(request, unknown, what)
        structural_schema.set_defaults(rest, self.structural)
        head = {"apiVersion": self.stored.group_version, "kind": resource.kind}
        return {**head, "metadata": document.get("metadata") or {}, **rest}

    def published(self, prefix: str) -> Json:
        """Give the schema as OpenAPI publishes it."""
        kind = {"group": self.resource.group, "version": self.resource.version, "kind": self.resource.kind}
        metadata = {"$ref": prefix + _OBJECT_META}
        properties = {**self.schema["properties"], "metadata": metadata}
        return {
            **self.structural,
            "type": "object",
            "properties": properties,
            "x-kubernetes-group-version-kind": [kind],
        }


class CustomStrategy(RestStrategy):
    """Custom resources: valid when their schema and its rules say so."""

    def __init__(self, structural: Json) -> None:
        required = [one for one in structural.get("required") or () if one not in _HEAD]
        self._top = {**structural, "required": required}

    def validate(self, document: Json) -> list[Cause]:
        """Find what the schema, and on a creation its rules, do not allow."""
        found = self._shape(document)
        if document["metadata"].get("resourceVersion") != _NEW:
            return found
        return found + check_rules(document, None, self._top, found)

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """Find what the rules do not allow, those about the change included."""
        return check_rules(new, old, self._top, self._shape(new))

    def _shape(self, document: Json) -> list[Cause]:
        rest = {key: value for key, value in document.items() if key not in _HEAD}
        properties = {key: one for key, one in (self._top.get("properties") or {}).items() if key in rest}
        return structural_schema.validate(rest, {**self._top, "properties": properties}, "")


class Definitions:
    """Serves what CustomResourceDefinitions define, as they come and go."""

    def __init__(self, rest: RestStorage) -> None:
        self._rest = rest
        self._served: dict[str, list[ServedResource]] = {}

    def changed(self, resource: ServedResource, entry: StoredObject, *, gone: bool = False) -> None:
        """Take note of a written object; only definitions matter here."""
        if resource.plural != _PLURAL or entry.revision == 0:
            return
        document = entry.decode()
        if gone or document["metadata"].get("deletionTimestamp"):
            self._withdraw(document)
            return
        self._serve(document)
        if not _is_established(document):
            self._establish(resource, document)

    def _serve(self, document: Json) -> None:
        for old in self._served.pop(document["metadata"]["name"], ()):
            self._rest.catalogue.remove(old)
        spec = document["spec"]
        made = [(version, _resource(spec, version)) for version in spec.get("versions") or ()]
        stored = next((resource for version, resource in made if version.get("storage")), None)
        served = []
        for version, resource in made:
            resource.custom.stored = stored or resource
            resource.custom.resource = resource
            if version.get("served", True):
                self._rest.catalogue.add(resource)
                served.append(resource)
        self._served[document["metadata"]["name"]] = served

    def _establish(self, resource: ServedResource, document: Json) -> None:
        now = self._rest.now()

        def establish(definition: Json) -> None:
            names = definition["spec"].get("names") or {}
            stored = [one["name"] for one in definition["spec"].get("versions") or () if one.get("storage")]
            definition["status"] = {
                "conditions": [
                    _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                    _condition(
                        "Established", "InitialNamesAccepted", "the initial names have been accepted", now
                    ),
                ],
                "acceptedNames": names,
                "storedVersions": stored,
            }

        self._rest.change(resource, "", document["metadata"]["name"], establish)

    def _withdraw(self, document: Json) -> None:
        for resource in self._served.pop(document["metadata"]["name"], ()):
            for entry in self._rest.collection(resource).entries():
                self._rest.delete(resource, entry, Deletion())
            self._rest.catalogue.remove(resource)


def _is_established(document: Json) -> bool:
    conditions = (document.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)


def _condition(kind: str, reason: str, message: str, now: str) -> Json:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def _resource(spec: Json, version: Json) -> ServedResource:
    names = spec.get("names") or {}
    subresources = version.get("subresources") or {}
    return ServedResource(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced=spec.get("scope") == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("status", "scale") if name in subresources),
        generation=True,
        returns_deleted=False,
        custom=CustomKind(version),
    )


def _table(columns: list[Json]) -> Table:
    made = [
        PrinterColumn(
            one["name"],
            _cell(one["jsonPath"], one.get("type", "string")),
            wide=one.get("priority", 0) > 0,
            kind=one.get("type", "string"),
        )
        for one in columns
    ]
    return Table((NAME, *made)) if made else Table((NAME, AGE))


def _cell(path: str, kind: str) -> Cell:
    def cell(document: Json, now: float) -> Any:
        found = find(document, path)
        if not found:
            return None
        value = found[0]  # of several, as on a real server, the first alone is shown
        if kind == "date":
            return since(value, now)
        if isinstance(value, int | float) and kind in ("integer", "number"):
            return value
        return value if isinstance(value, str) else encode(value).decode()

    return cell
