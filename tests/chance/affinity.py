"""Where pods want to be: node selectors and affinity, affinity to other pods, spreading, tolerations."""

from tests.chance.draw import (
    HOST,
    NAMESPACES,
    PREFERRED,
    REQUIRED,
    TOPOLOGIES,
    ZONE,
    label_selector,
    node_term,
)
from tests.chance.nodes import EFFECTS, TAINT_KEYS, TAINT_VALUES

KEYS = ("app", "version", "tier", "missing")


def affinity(chance, mix, names):
    """A pod's affinity; `names` are the nodes there are."""
    made = {}
    if chance.maybe(mix["node_affinity"]):
        made["nodeAffinity"] = node_affinity(chance, names)
    for kind in ("podAffinity", "podAntiAffinity"):
        if chance.maybe(mix[kind]):
            made[kind] = _among_pods(chance)
    return made


def node_affinity(chance, names):
    """Affinity to nodes: what it requires, what it prefers, or both."""
    form, made = chance.choice(("required", "preferred", "both")), {}
    if form != "preferred":
        terms = [node_term(chance, names) for _ in range(chance.choice((1, 1, 2, 3)))]
        made[REQUIRED] = {"nodeSelectorTerms": terms}
    if form != "required":
        made[PREFERRED] = [
            {"weight": chance.randint(1, 100), "preference": node_term(chance, names)}
            for _ in range(chance.randint(1, 3))
        ]
    return made


def _among_pods(chance):
    """Terms of affinity or anti-affinity to pods: what they require, what they prefer, or both."""
    form, made = chance.choice(("required", "preferred", "preferred", "both")), {}
    if form != "preferred":
        made[REQUIRED] = [_pod_term(chance) for _ in range(chance.choice((1, 1, 2)))]
    if form != "required":
        made[PREFERRED] = [
            {"weight": chance.randint(1, 100), "podAffinityTerm": _pod_term(chance)}
            for _ in range(chance.randint(1, 3))
        ]
    return made


def _pod_term(chance):
    made = {"topologyKey": chance.choice(TOPOLOGIES)}
    selector = label_selector(chance)
    if selector is not None:
        made["labelSelector"] = selector
    if chance.maybe(0.2):
        made["namespaces"] = chance.some(NAMESPACES, 1, 2)
    if chance.maybe(0.3):
        made["namespaceSelector"] = chance.choice(
            (
                {},
                {"matchLabels": {"team": "blue"}},
                {"matchExpressions": [{"key": "shared", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            )
        )
    return made | (_label_keys(chance, selector) if selector else {})


def _label_keys(chance, selector):
    """matchLabelKeys and mismatchLabelKeys, of keys that the selector does not name."""
    free, made = _free_keys(selector), {}
    if free and chance.maybe(0.2):
        made["matchLabelKeys"] = [free.pop(chance.randrange(len(free)))]
    if free and chance.maybe(0.1):
        made["mismatchLabelKeys"] = [free.pop(chance.randrange(len(free)))]
    return made


def _free_keys(selector):
    named = {each["key"] for each in selector.get("matchExpressions", ())} | selector.get(
        "matchLabels", {}
    ).keys()
    return [key for key in KEYS if key not in named]


def spreading(chance, mix):
    """Topology spread constraints, of no key and action twice."""
    if not chance.maybe(mix["spreading"]):
        return {}
    pairs = {
        (chance.choice(TOPOLOGIES), chance.choice(("DoNotSchedule", "ScheduleAnyway")))
        for _ in range(chance.choice((1, 1, 2, 3)))
    }
    return {"topologySpreadConstraints": [_constraint(chance, *pair) for pair in sorted(pairs)]}


def _constraint(chance, key, when):
    made = {"maxSkew": chance.choice((1, 1, 2, 5)), "topologyKey": key, "whenUnsatisfiable": when}
    selector = label_selector(chance)
    if selector is not None:
        made["labelSelector"] = selector
    if when == "DoNotSchedule" and chance.maybe(0.3):
        made["minDomains"] = chance.randint(1, 5)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if chance.maybe(0.4):
            made[field] = chance.choice(("Honor", "Ignore"))
    free = _free_keys(selector) if selector else []
    if free and chance.maybe(0.3):
        made["matchLabelKeys"] = chance.some(free, 1, 2)
    return made


def default_constraints(chance):
    """Constraints of a profile for pods that have none of their own."""
    return [
        {"maxSkew": chance.choice((1, 3)), "topologyKey": key, "whenUnsatisfiable": chance.choice(when)}
        for key in chance.some((HOST, ZONE, "rack"), 1, 2)
        for when in [("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway")]
    ]


def tolerations(chance, mix):
    """Tolerations of all forms."""
    if not chance.maybe(mix["tolerations"]):
        return {}
    return {"tolerations": [_toleration(chance) for _ in range(chance.randint(1, 3))]}


def _toleration(chance):
    effect = chance.choice(("", *EFFECTS))
    made = {"effect": effect} if effect else {}
    if chance.maybe(0.1):
        return made | {"operator": "Exists"}
    made["key"] = chance.choice((*TAINT_KEYS, "node.kubernetes.io/unschedulable"))
    if chance.maybe(0.5):
        return made | {"operator": "Exists"}
    return (
        made | {"value": chance.choice(TAINT_VALUES)} | ({"operator": "Equal"} if chance.maybe(0.5) else {})
    )
