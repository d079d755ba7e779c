"""The field numbers with which the sandbox reads Kubernetes' types as protobuf, from the struct tags in Go.

`make proto` writes berth/sandbox/bodies/protobuf_fields.json, and `make lint-proto` compares it.
k8s.io/api and k8s.io/apimachinery are those of go.mod files of this repository, of two releases: a number
keeps its field.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from berth.sandbox import schemas
from berth.sandbox.bodies import protobuf_fields
from tests.go_toolchain import ROOT, ask_go

FILE = Path(protobuf_fields.__file__).with_suffix(".json")
GO_MODULES = ROOT / "tests/e2e/client_go", ROOT / "plugin-sdk/go"
"""Modules that need k8s.io/api, the one of the older release first."""
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
PACKAGES = (
    *("apps.v1", "authentication.v1", "authorization.v1", "batch.v1", "coordination.v1", "core.v1"),
    *("events.v1", "policy.v1", "rbac.v1", "scheduling.v1"),
)
SENT = (
    "apps.v1.Deployment",
    "authentication.v1.SelfSubjectReview",
    "authentication.v1.TokenRequest",
    "authentication.v1.TokenReview",
    "authorization.v1.SelfSubjectAccessReview",
    "authorization.v1.SelfSubjectRulesReview",
    "authorization.v1.SubjectAccessReview",
    "batch.v1.Job",
    "coordination.v1.Lease",
    "core.v1.Binding",
    "core.v1.ConfigMap",
    "core.v1.Event",
    "core.v1.Namespace",
    "core.v1.Node",
    "core.v1.Pod",
    "core.v1.ResourceQuota",
    "core.v1.Secret",
    "core.v1.Service",
    "core.v1.ServiceAccount",
    "events.v1.Event",
    "policy.v1.Eviction",
    "policy.v1.PodDisruptionBudget",
    "rbac.v1.ClusterRole",
    "rbac.v1.ClusterRoleBinding",
    "rbac.v1.Role",
    "rbac.v1.RoleBinding",
    "scheduling.v1.PriorityClass",
)
"""The kinds that kubectl, schedulers and autoscalers send as protobuf; what they consist of follows."""

STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(
    r'^\t(?:\w+\s+)?([\w.*\[\]]+)\s+`json:"(\w*),?([\w,]*)"[^`]*protobuf:"(\w+),(\d+),', re.MULTILINE
)

Types = dict[str, dict[str, Any]]


def generated() -> str:
    """The file's text: by type, names by number, inlined types by number, and what is unset when zero."""
    declared: Types = {}
    for name, entry in (pair for module in GO_MODULES for pair in _declared(module)):
        known = declared.setdefault(name, {"names": {}, "inline": {}, "unset": []})
        known["names"] |= entry["names"]
        known["inline"] |= entry["inline"]
        known["unset"] = sorted({*known["unset"], *entry["unset"]})
    found = _reached(declared)
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(found.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _declared(module: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The structs of the module's Kubernetes packages, by full name."""
    api, machinery = (_folder(module, name) for name in ("k8s.io/api", "k8s.io/apimachinery"))
    files = [(f"io.k8s.api.{name}.", api / name.replace(".", "/") / "types.go") for name in PACKAGES]
    for prefix, path in [*files, (META, machinery / "pkg/apis/meta/v1/types.go")]:
        for name, body in STRUCT.findall(path.read_text()):
            yield prefix + name, _entry(prefix, body)


def _folder(module: Path, name: str) -> Path:
    answer = ask_go("mod", "download", "-json", name, folder=module)
    if answer is None:
        raise RuntimeError(f"no {name} for {module.relative_to(ROOT)}: go mod download failed")
    return Path(json.loads(answer)["Dir"])


def _entry(prefix: str, body: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"names": {}, "inline": {}, "unset": []}
    for go_type, name, options, wire_type, number in FIELD.findall(body):
        if name:
            entry["names"][number] = name
        elif "inline" in options and "." not in go_type:
            entry["inline"][number] = prefix + go_type
        # Go writes numbers and flags that are no pointers, whether they are set or not.
        if wire_type == "varint" and go_type[0] not in "*[" and "omitempty" in options:
            entry["unset"].append(name)
    return entry


def _reached(declared: Types) -> Types:
    """What the kinds that are sent consist of, by the references of the published schemas."""
    found: Types = {}
    waiting = [(name, name) for name in (*(f"io.k8s.api.{each}" for each in SENT), META + "DeleteOptions")]
    while waiting:
        name, outer = waiting.pop()
        if name in found or name not in declared:
            continue
        properties = schemas.definitions().get(outer, {}).get("properties", {})
        entry = found[name] = {**declared[name]}
        entry["names"] = {number: key for number, key in entry["names"].items() if key in properties}
        waiting += [(inlined, outer) for inlined in entry["inline"].values()]
        for key in entry["names"].values():
            waiting += [(referred, referred) for referred in _referred(properties[key])]
    return {name: {key: part for key, part in entry.items() if part} for name, entry in found.items()}


def _referred(schema: Any) -> Iterator[str]:
    if (name := schemas.ref_name(schema)) is not None:
        yield name
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _referred(schema[key])
