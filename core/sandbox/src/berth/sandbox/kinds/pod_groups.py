"""Pod groups and workloads (scheduling.k8s.io): defaults, priority, and what is fixed at creation.

In v1alpha2 disruptionMode is a word and the spec never changes; in v1beta1 it is an object with one field,
and a gang's minCount may change.

Source: pkg/registry/scheduling/{podgroup,workload}, pkg/apis/scheduling/validation (Kubernetes v1.36, v1.37).
"""

from typing import Any, Final

from berth.sandbox import meta
from berth.sandbox.errors import Cause, duplicate, invalid_value, not_supported, required
from berth.sandbox.kinds.pods import resolve_priority
from berth.sandbox.kinds.strategy import Context, RestStrategy
from berth.sandbox.store import Json

_POLICIES: Final = ("basic", "gang")
_DISRUPTION_WORDS: Final = ("Pod", "PodGroup")
_DISRUPTION_FIELDS: Final = ("single", "all")
_ALPHA: Final = "scheduling.k8s.io/v1alpha2"
_MAX_TEMPLATES: Final = 8
_MAX_CLAIMS: Final = 4


class PodGroupStrategy(RestStrategy):
    """Pod groups: a disruption mode and a priority, and a spec that never changes."""

    def prepare_create(self, document: Json, context: Context) -> None:
        """Set defaults and the priority of the class; the status starts empty."""
        spec = document.setdefault("spec", {})
        alpha = context.resource.group_version == _ALPHA
        spec.setdefault("disruptionMode", "Pod" if alpha else {"single": {}})
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
        """Nothing of the spec may change; but, in v1beta1, how many pods a gang needs."""
        before, after = (_without_min_count(each) for each in (old, new))
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        return [invalid_value(f"spec.{field}", after.get(field), "field is immutable") for field in changed]


class PodGroupTemplatesStrategy(RestStrategy):
    """Workloads: templates of pod groups, fixed at creation."""

    def validate(self, document: Json) -> list[Cause]:
        """Find the wrong fields of the templates."""
        templates = document["spec"].get("podGroupTemplates") or []
        path = "spec.podGroupTemplates"
        found = [] if templates else [required(path, "must have at least one item")]
        found += _too_many(path, templates, _MAX_TEMPLATES)
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
        """Nor may templates, nor a reference once it is there."""
        before, after = (_without_min_count(each) for each in (old, new))
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
    found += _check_mode(spec.get("disruptionMode"), f"{path}.disruptionMode")
    return found + _too_many(f"{path}.resourceClaims", spec.get("resourceClaims") or [], _MAX_CLAIMS)


def _check_mode(mode: Any, path: str) -> list[Cause]:
    if isinstance(mode, str) and mode not in _DISRUPTION_WORDS:
        return [not_supported(path, mode, _DISRUPTION_WORDS)]
    if isinstance(mode, dict):
        return _check_one_of(mode, _DISRUPTION_FIELDS, path)
    return []


def _check_one_of(union: Json, names: tuple[str, ...], path: str) -> list[Cause]:
    """One of these fields is to be set."""
    chosen = [name for name in names if union.get(name) is not None]
    if len(chosen) == 1:
        return []
    verb = "exactly one" if chosen else "one"
    return [invalid_value(path, union, f"must specify {verb} of: {', '.join(f'`{name}`' for name in names)}")]


def _without_min_count(document: Json) -> Json:
    """The spec without what an update may change of it."""
    spec: Json = document["spec"]
    if document.get("apiVersion") == _ALPHA:
        return spec
    templates = [_any_gang(template) for template in spec.get("podGroupTemplates") or ()]
    return _any_gang(spec) | ({"podGroupTemplates": templates} if templates else {})


def _any_gang(group: Json) -> Json:
    policy = group.get("schedulingPolicy") or {}
    return group | {"schedulingPolicy": policy | {"gang": {}}} if policy.get("gang") else group


def _check_policy(policy: Json | None, path: str) -> list[Cause]:
    if policy is None:
        return [required(path)]
    if found := _check_one_of(policy, _POLICIES, path):
        return found
    if policy.get("gang") is None:
        return []
    count = policy["gang"].get("minCount")
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
