"""The schemas for kustomize's `openapi` field: with them, patches merge our lists by their keys.

A file given there takes the place of the schemas that kustomize brings along, so the merge keys of the
built-in kinds that people patch beside ours are in it, too.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from berth.operator.definitions.plugin_definition import plugin_definition
from berth.operator.definitions.scheduler_definition import scheduler_definition
from berth.operator.definitions.schema import Schema
from berth.sandbox import schemas

_KINDS: Final = (
    *(f"io.k8s.api.apps.v1.{kind}" for kind in ("Deployment", "DaemonSet", "StatefulSet")),
    *(f"io.k8s.api.batch.v1.{kind}" for kind in ("Job", "CronJob")),
    *(f"io.k8s.api.core.v1.{kind}" for kind in ("Pod", "Service", "ServiceAccount")),
)
_MERGING: Final = ("x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy")
_IDENTITY: Final = "x-kubernetes-group-version-kind"


def merge_keys() -> str:
    """Give the file's text."""
    definitions = dict(_ours())
    for kind in _KINDS:
        _collect(kind, definitions)
    return json.dumps({"definitions": definitions}, indent=1, sort_keys=True) + "\n"


def _ours() -> Iterator[tuple[str, Schema]]:
    for definition in (scheduler_definition(), plugin_definition()):
        spec, version = definition["spec"], definition["spec"]["versions"][0]
        kind = spec["names"]["kind"]
        schema = _structure(version["schema"]["openAPIV3Schema"])
        identity = {"group": spec["group"], "version": version["name"], "kind": kind}
        yield f"dev.berth.{version['name']}.{kind}", {**schema, _IDENTITY: [identity]}


def _structure(node: Any) -> Schema:
    """Give the part of a schema that says how lists are merged."""
    made: Schema = {"type": node["type"]} if "type" in node else {}
    if "properties" in node:
        made["properties"] = {name: _structure(below) for name, below in node["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            made[name] = _structure(node[name])
    keys = node.get("x-kubernetes-list-map-keys")
    if keys:
        made |= dict(zip(_MERGING, (keys[0], "merge"), strict=True))
    return made


def _collect(name: str, found: dict[str, Schema]) -> None:
    """Add a built-in type and those that it refers to."""
    if name in found:
        return
    found[name] = {}
    found[name] = _built_in(schemas.definitions()[name], found)


def _built_in(node: Schema, found: dict[str, Schema]) -> Schema:
    made: Schema = {key: node[key] for key in (*_MERGING, _IDENTITY) if key in node}
    reference = schemas.ref_name(node)
    if reference is not None:
        _collect(reference, found)
        return {**made, "$ref": f"#/definitions/{reference}"}
    kind = schemas.type_of(node)
    if kind:
        made["type"] = kind
    if "properties" in node:
        made["properties"] = {name: _built_in(below, found) for name, below in node["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            made[name] = _built_in(node[name], found)
    return made
