"""Questions on which Berth mends a fault of kube-scheduler, and so may differ: docs/upstream-faults.md."""

ANY_NAMESPACE = "kubernetes/kubernetes#141526"
ONE_NODE_FAILS_ALL = "kubernetes/kubernetes#141829"
NEGATIVE = {"NotIn", "DoesNotExist"}
ALLOCATOR_FAILED = 'running "DynamicResources" filter plugin: '


def mended(scenario, different):
    """The fault that the question meets, "" for none; `different` are the lines that say what differs.

    A required term of its pod with a selector that is taken for all namespaces; an attempt of kube-scheduler
    that ended with an error about the devices of one node.
    """
    affinity = scenario["pod"]["spec"].get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        required = (affinity.get(kind) or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        if any(_is_taken_for_all(term.get("namespaceSelector")) for term in required or ()):
            return ANY_NAMESPACE
    return ONE_NODE_FAILS_ALL if any(line.startswith(ALLOCATOR_FAILED) for line in different) else ""


def _is_taken_for_all(selector):
    """Whether the selector of namespaces has requirements, and a namespace without labels meets them all."""
    if not selector or selector.get("matchLabels"):
        return False
    operators = {each["operator"] for each in selector.get("matchExpressions") or ()}
    return bool(operators) and operators <= NEGATIVE
