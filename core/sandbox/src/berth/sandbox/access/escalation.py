"""No user grants more than they have: roles and bindings are checked when they are written.

Source: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased (v1.36).
"""

from collections.abc import Iterator
from itertools import product

from berth.sandbox.access.rbac import Rbac
from berth.sandbox.attributes import RequestAttributes, SandboxUser
from berth.sandbox.store import Json

_GROUP = "rbac.authorization.k8s.io"
ROLES = ("roles", "clusterroles")
BINDINGS = ("rolebindings", "clusterrolebindings")


def escalation(rbac: Rbac, user: SandboxUser, plural: str, namespace: str, document: Json) -> str:
    """Say what the user would give away without having it; empty if nothing."""
    name = document.get("metadata", {}).get("name", "")
    if plural in ROLES:
        rules = document.get("rules") or []
        free = rbac.allows(user, RequestAttributes("escalate", _GROUP, plural, namespace, name))
    else:
        reference = document.get("roleRef") or {}
        rules = rbac.role_rules(reference, namespace)
        kind = "roles" if reference.get("kind") == "Role" else "clusterroles"
        free = rbac.allows(
            user, RequestAttributes("bind", _GROUP, kind, namespace, reference.get("name", ""))
        )
    if free:
        return ""
    missing = [asked for rule in rules for asked in _pieces(rule, namespace) if not rbac.allows(user, asked)]
    if not missing:
        return ""
    listed = "\n".join(_shown(asked) for asked in missing)
    return f'user "{user.name}" is attempting to grant RBAC permissions not currently held:\n{listed}'


def _pieces(rule: Json, namespace: str) -> Iterator[RequestAttributes]:
    verbs = rule.get("verbs") or []
    for verb, path in product(verbs, rule.get("nonResourceURLs") or ()):
        yield RequestAttributes(verb, path=path)
    names = rule.get("resourceNames") or [""]
    for verb, group, resource, name in product(
        verbs, rule.get("apiGroups") or (), rule.get("resources") or (), names
    ):
        yield RequestAttributes(verb, group, resource, namespace, name)


def _shown(asked: RequestAttributes) -> str:
    if asked.path:
        return f'{{NonResourceURLs:["{asked.path}"], Verbs:["{asked.verb}"]}}'
    names = f', ResourceNames:["{asked.name}"]' if asked.name else ""
    return f'{{APIGroups:["{asked.group}"], Resources:["{asked.resource}"]{names}, Verbs:["{asked.verb}"]}}'
