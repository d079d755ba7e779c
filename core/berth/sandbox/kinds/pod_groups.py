"""Pod groups and workloads (scheduling.k8s.io/v1alpha2): defaults, priority, and what is fixed at creation.

Source: pkg/registry/scheduling/{podgroup,workload}, pkg/apis/scheduling/validation (Kubernetes v1.36).
"""

from typing import Final

from berth.sandbox import meta
from berth.sandbox.errors import Cause, duplicate, invalid_value, not_supported, required
from berth.sandbox.kinds.pods import resolve_priority
from berth.sandbox.kinds.strategy import Context, Strategy
from berth.sandbox.store import Json

_POLICIES: Final = ("basic", "gang")
_DISRUPTION_MODES: Final = ("Pod", "PodGroup")
_MOST_TEMPLATES: Final = 8
_MOST_CLAIMS: Final = 4


class PodGroupStrategy(Strategy):
    """Pod groups: a disruption mode and a priority, and a spec that never changes."""

    def prepare_create(self, document: Json, context: Context) -> None:
        """Set defaults and the priority of the class; the status starts empty."""
        spec = document.setdefault("spec", {})
        spec.setdefault("disruptionMode", "Pod")
        resolve_priority(document, "podgroups", context)
        if not context.keep_status:
            document["status"] = {}

    def prepare_update(self, new: Json, old: Json, _context: Context) -> None:
        """Keep the status, and what the server filled in."""
        spec = new.setdefault("spec", {})
        for field in ("disruptionMode", "priority"):
            if field in old["spec"]:
                spec.setdefault(field, old["spec"][field])
        new["status"] = old.get("status", {})

    def validate(self, document: Json) -> list[Cause]:
        """Find the wrong fields of the spec."""
        return _check_group(document["spec"], "spec")

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """Nothing of the spec may change."""
        before, after = old["spec"], new["spec"]
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        return [invalid_value(f"spec.{field}", after.get(field), "field is immutable") for field in changed]


class PodGroupTemplatesStrategy(Strategy):
    """Workloads: templates of pod groups, fixed at creation."""

    def validate(self, document: Json) -> list[Cause]:
        """Find the wrong fields of the templates."""
        templates = document["spec"].get("podGroupTemplates") or []
        path = "spec.podGroupTemplates"
        found = [] if templates else [required(path, "must have at least one item")]
        found += _too_many(path, templates, _MOST_TEMPLATES)
        seen: set[str] = set()
        for index, template in enumerate(templates):
            name = template.get("name") or ""
            found += meta.check_name(name, f"{path}[{index}].name", label=True)
            if name in seen:
                found.append(duplicate(f"{path}[{index}].name", name))
            seen.add(name)
            found += _check_group(template, f"{path}[{index}]")
        return found

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """The templates may not change, nor a reference once it is there."""
        before, after = old["spec"], new["spec"]
        fixed = ["podGroupTemplates", *(("controllerRef",) if before.get("controllerRef") else ())]
        return [
            invalid_value(f"spec.{field}", after.get(field), "field is immutable")
            for field in fixed
            if before.get(field) != after.get(field)
        ]


def _check_group(spec: Json, path: str) -> list[Cause]:
    """What groups and their templates have in common."""
    found = _check_policy(spec.get("schedulingPolicy"), f"{path}.schedulingPolicy")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    where = f"{path}.schedulingConstraints.topology"
    found += _too_many(where, topology, 1)
    for index, constraint in enumerate(topology):
        found += meta.check_label_key(constraint.get("key") or "", f"{where}[{index}].key")
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in _DISRUPTION_MODES:
        found.append(not_supported(f"{path}.disruptionMode", mode, _DISRUPTION_MODES))
    return found + _too_many(f"{path}.resourceClaims", spec.get("resourceClaims") or [], _MOST_CLAIMS)


def _check_policy(policy: Json | None, path: str) -> list[Cause]:
    if policy is None:
        return [required(path)]
    chosen = [name for name in _POLICIES if policy.get(name) is not None]
    if len(chosen) != 1:
        verb = "exactly one" if chosen else "one"
        return [invalid_value(path, policy, f"must specify {verb} of: `basic`, `gang`")]
    count = policy["gang"].get("minCount") if chosen == ["gang"] else 1
    if count is None:
        return [required(f"{path}.gang.minCount")]
    if count < 1:
        return [invalid_value(f"{path}.gang.minCount", count, "must be greater than or equal to 1")]
    return []


def _too_many(path: str, items: list[Json], most: int) -> list[Cause]:
    if len(items) <= most:
        return []
    text = f"Too many: {len(items)}: must have at most {most} item{'s' if most > 1 else ''}"
    return [Cause("FieldValueTooMany", text, path)]
