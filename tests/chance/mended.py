"""Questions on which Berth mends a fault of kube-scheduler, and so may differ: docs/upstream-faults.md."""

ANY_NAMESPACE = "kubernetes/kubernetes#141526"
NEGATIVE = {"NotIn", "DoesNotExist"}


def mended(scenario):
    """The fault that the question meets, "" for none: a required term of its pod with such a selector."""
    affinity = scenario["pod"]["spec"].get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        required = (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        if any(_is_taken_for_all(term.get("namespaceSelector")) for term in required or ()):
            return ANY_NAMESPACE
    return ""


def _is_taken_for_all(selector):
    """Whether the selector of namespaces has requirements, and a namespace without labels meets them all."""
    if not selector or selector.get("matchLabels"):
        return False
    operators = {each["operator"] for each in selector.get("matchExpressions") or ()}
    return bool(operators) and operators <= NEGATIVE
