"""What a pod's subresource `resize` may change: cpu and memory of its containers and sidecars.

Source: KEP-1287; pkg/apis/core/validation/validation.go ValidatePodResize, pkg/registry/core/pod/strategy.go
(v1.36).
"""

from collections.abc import Iterator
from typing import Final

from berth.sandbox.errors import Cause, forbidden_field, invalid_value
from berth.sandbox.kinds import pod_defaults
from berth.sandbox.store import Json

_LISTS: Final = ("initContainers", "containers")
_FIELDS: Final = ("resources", "resizePolicy")
_RESIZED: Final = frozenset({"cpu", "memory"})
_MIRROR: Final = "kubernetes.io/config.mirror"


def take_resize(new: Json, old: Json) -> None:
    """Leave of an update what the subresource is for; all else stays as it was, without an error."""
    pod_defaults.set_defaults(new.setdefault("spec", {}))
    spec = dict(old["spec"])
    for field in _LISTS:
        wanted = {each.get("name"): each for each in new["spec"].get(field) or ()}
        if field in spec:
            spec[field] = [_resized(each, wanted.get(each["name"], each)) for each in spec[field]]
    managed = new["metadata"].get("managedFields")
    new["metadata"] = {**old["metadata"], **({"managedFields": managed} if managed else {})}
    new["spec"], new["status"] = spec, old["status"]


def _resized(container: Json, wanted: Json) -> Json:
    rest = {key: value for key, value in container.items() if key not in _FIELDS}
    return rest | {key: wanted[key] for key in _FIELDS if key in wanted}


def check_resize(new: Json, old: Json) -> list[Cause]:
    """Find changes that no resize may make."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden_field("", "static pods cannot be resized")]
    found: list[Cause] = []
    before, after = (pod_defaults.qos_class(pod["spec"]) for pod in (old, new))
    if before != after:
        found.append(invalid_value("spec", after, "Pod QOS Class may not change as a result of resizing"))
    for path, one, other in _pairs(new["spec"], old["spec"]):
        found += _check_container(one, other, path)
    return found


def _pairs(new: Json, old: Json) -> Iterator[tuple[str, Json, Json]]:
    """Each container, after and before, with its path."""
    for field in _LISTS:
        for index, (one, other) in enumerate(zip(new.get(field) or (), old.get(field) or (), strict=True)):
            yield f"spec.{field}[{index}]", one, other


def _check_container(new: Json, old: Json, path: str) -> list[Cause]:
    found = []
    if path.startswith("spec.initContainers") and old.get("restartPolicy") != "Always":
        if new != old:
            text = "only cpu and memory resources for sidecar containers are mutable"
            found.append(forbidden_field("spec", text))
        return found
    if _fixed(new) != _fixed(old):
        found.append(forbidden_field("spec", "only cpu and memory resources are mutable"))
    for field in ("requests", "limits"):
        held, wanted = ((each["resources"].get(field) or {}).keys() & _RESIZED for each in (old, new))
        if held - wanted:
            found.append(forbidden_field(f"{path}.resources.{field}", f"resource {field} cannot be removed"))
    return found


def _fixed(container: Json) -> Json:
    """The container without what may change."""
    resources = dict(container["resources"])
    for field in ("requests", "limits"):
        amounts = {
            name: each for name, each in (resources.pop(field, None) or {}).items() if name not in _RESIZED
        }
        if amounts:
            resources[field] = amounts
    return {**container, "resources": resources}
