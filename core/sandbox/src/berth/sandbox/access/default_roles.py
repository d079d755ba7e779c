"""Roles and bindings that every cluster comes with; the part of them that a development cluster has use for.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go (v1.36).
"""

from collections.abc import Iterator

from berth.sandbox.access import delegation
from berth.sandbox.store import Json

_API = "rbac.authorization.k8s.io/v1"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/")
_HEALTH = ("/healthz", "/livez", "/readyz")


def default_roles() -> Iterator[Json]:
    """Give the roles, and who has them."""
    everything = [_rule(["*"], ["*"], ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    yield from _role("cluster-admin", everything, "system:masters")
    yield from _role("system:discovery", [_paths([*_DISCOVERY, *_HEALTH])], "system:authenticated")
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    basics = [
        _rule(["create"], ["authorization.k8s.io"], reviews),
        _rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
    ]
    yield from _role("system:basic-user", basics, "system:authenticated")
    yield from _role("system:public-info-viewer", [_paths([*_HEALTH, "/version"])], "system:unauthenticated")
    for name in ("admin", "edit", "view"):
        yield _document("ClusterRole", name, aggregationRule={"clusterRoleSelectors": [_selector(name)]})
    # To be bound to accounts that ask the API server about its own clients.
    reviewing = [
        _rule(["create"], ["authentication.k8s.io"], ["tokenreviews"]),
        _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
    ]
    yield _document("ClusterRole", "system:auth-delegator", rules=reviewing)
    reading = {**_rule(["get", "list", "watch"], [""], ["configmaps"]), "resourceNames": [delegation.NAME]}
    place = {"name": f"{delegation.NAME}-reader", "namespace": delegation.NAMESPACE}
    yield {**_document("Role", "", rules=[reading]), "metadata": place}


def _role(name: str, rules: list[Json], group: str) -> Iterator[Json]:
    yield _document("ClusterRole", name, rules=rules)
    yield _document(
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
    )


def _document(kind: str, name: str, **more: object) -> Json:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, **more}


def _selector(name: str) -> Json:
    return {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}


def _rule(verbs: list[str], groups: list[str], resources: list[str]) -> Json:
    return {"verbs": verbs, "apiGroups": groups, "resources": resources}


def _paths(paths: list[str]) -> Json:
    return {"verbs": ["get"], "nonResourceURLs": paths}
