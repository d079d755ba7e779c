"""The pod's strategy: defaults, priority and gates on creation; what updates may change.

Source: pkg/registry/core/pod/strategy.go, plugin/pkg/admission/priority (v1.36).
"""

from berth.sandbox.errors import ApiError, Cause
from berth.sandbox.kinds import pod_defaults
from berth.sandbox.kinds.pod_resize import check_resize, take_resize
from berth.sandbox.kinds.pod_validation import check_pod, check_pod_update
from berth.sandbox.kinds.strategy import Context, RestStrategy
from berth.sandbox.store import Json


class PodStrategy(RestStrategy):
    """Pods are born Pending, with everything filled in that schedulers and kubelets rely on."""

    def prepare_create(self, document: Json, context: Context) -> None:
        """Fill in defaults, priority and tolerations; start the status."""
        spec = document.setdefault("spec", {})
        pod_defaults.set_defaults(spec)
        _set_priority(document, context)
        pod_defaults.set_tolerations(spec)
        pod_defaults.merge_match_label_keys(spec, document["metadata"].get("labels") or {})
        status = dict(document.get("status") or {}) if context.keep_status else {}
        status.setdefault("phase", "Pending")
        if spec.get("containers"):
            status["qosClass"] = pod_defaults.qos_class(spec)
        if spec.get("schedulingGates") and not status.get("conditions"):
            status["conditions"] = [_gated()]
        document["status"] = status

    def prepare_update(self, new: Json, old: Json, _context: Context) -> None:
        """Keep the status; fill in defaults of what was added."""
        spec = new.setdefault("spec", {})
        pod_defaults.set_defaults(spec)
        pod_defaults.set_tolerations(spec)
        for field in ("priority", "preemptionPolicy"):
            if field in old["spec"]:
                spec.setdefault(field, old["spec"][field])
        new["status"] = old["status"]
        if old["spec"].get("schedulingGates") and not new["spec"].get("schedulingGates"):
            rest = [c for c in old["status"].get("conditions", ()) if c.get("reason") != "SchedulingGated"]
            new["status"] = {**old["status"], "conditions": rest}

    def prepare_status(self, new: Json, old: Json, _context: Context) -> None:
        """Keep what the server itself computed."""
        quality = old["status"].get("qosClass")
        if quality:
            new.setdefault("status", {}).setdefault("qosClass", quality)

    def prepare_resize(self, new: Json, old: Json) -> None:
        """Keep all but the resources of containers."""
        take_resize(new, old)

    def validate(self, document: Json) -> list[Cause]:
        """Find the wrong fields of the spec."""
        return check_pod(document["spec"])

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """Find changes of the spec that are not allowed."""
        return [] if new["spec"] == old["spec"] else check_pod_update(new["spec"], old["spec"])

    def validate_resize(self, new: Json, old: Json) -> list[Cause]:
        """Find changes that no resize may make."""
        return check_resize(new, old)


def _gated() -> Json:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": None,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def resolve_priority(document: Json, plural: str, context: Context) -> Json | None:
    """Set the priority that the object's class, or the default one, stands for; the class, if there is one.

    Raises: ApiError where there is no such class, or the object says otherwise itself.
    """
    spec = document["spec"]
    name = spec.get("priorityClassName") or ""
    chosen = _priority_class(name, context)
    if name and chosen is None:
        text = f"no PriorityClass with name {name} was found"
        raise _forbidden(document, plural, text)
    value = int(chosen["value"]) if chosen else 0
    given = spec.get("priority")
    # A file that is loaded may hold pods of a cluster whose priority classes it leaves out.
    if given is not None and given != value and not context.keep_status:
        text = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name"
        )
        raise _forbidden(document, plural, text)
    if given is None or not context.keep_status:
        spec["priority"] = value
    if chosen and not name:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    return chosen


def _set_priority(document: Json, context: Context) -> None:
    chosen = resolve_priority(document, "pods", context)
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    document["spec"].setdefault("preemptionPolicy", policy)


def _forbidden(document: Json, plural: str, text: str) -> ApiError:
    group = "" if plural == "pods" else "scheduling.k8s.io"
    return ApiError.forbidden(plural, group, document["metadata"].get("name", ""), text)


def _priority_class(name: str, context: Context) -> Json | None:
    classes = context.store.collection("priorityclasses.scheduling.k8s.io")
    if name:
        entry = classes.get(name)
        return entry.decode() if entry else None
    # Without a name the class marked as the global default counts, the lowest one if several are.
    if not any(b'"globalDefault":true' in entry.body for entry in classes.entries()):
        return None
    found = [entry.decode() for entry in classes.entries()]
    return min(
        (one for one in found if one.get("globalDefault")), key=lambda one: int(one["value"]), default=None
    )
