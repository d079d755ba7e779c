"""Authorisation by roles and their bindings, as they stand in the store.

Source: plugin/pkg/auth/authorizer/rbac and pkg/registry/rbac/validation (v1.36).
"""

from collections.abc import Iterable, Iterator

from berth.objects.selector_text import match_label_selector
from berth.sandbox.attributes import RequestAttributes, SandboxUser
from berth.sandbox.store import Json, SandboxStore

_GROUP = "rbac.authorization.k8s.io"
_SUPERUSERS = "system:masters"
_PREFIX = "system:serviceaccount:"


class Rbac:
    """Looks rules up; what it decoded is kept until a role or a binding is written."""

    def __init__(self, store: SandboxStore) -> None:
        kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
        self._collections = {kind: store.collection(f"{kind}.{_GROUP}") for kind in kinds}
        self._seen: tuple[int, ...] = ()
        self._documents: dict[str, dict[str, Json]] = {}

    def allows(self, user: SandboxUser, asked: RequestAttributes) -> bool:
        """Say whether the user may."""
        if _SUPERUSERS in user.groups:
            return True
        return any(_covers(rule, asked) for rule in self.rules(user, asked.namespace))

    def rules(self, user: SandboxUser, namespace: str) -> Iterator[Json]:
        """Give the rules that hold for the user in the namespace, and in the whole cluster."""
        self._refresh()
        for binding in self._documents["clusterrolebindings"].values():
            if _names(binding, user, ""):
                yield from self.role_rules(binding.get("roleRef") or {}, "")
        if not namespace:
            return
        for key, binding in self._documents["rolebindings"].items():
            if key.startswith(f"{namespace}/") and _names(binding, user, namespace):
                yield from self.role_rules(binding.get("roleRef") or {}, namespace)

    def role_rules(self, reference: Json, namespace: str) -> list[Json]:
        """Give the rules of the role that a binding refers to, none where it does not exist."""
        self._refresh()
        name = reference.get("name", "")
        if reference.get("kind") == "Role":
            return list((self._documents["roles"].get(f"{namespace}/{name}") or {}).get("rules") or ())
        role = self._documents["clusterroles"].get(name) or {}
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if selectors is None:
            return list(role.get("rules") or ())
        return [rule for one in self._aggregated(selectors) for rule in one.get("rules") or ()]

    def _aggregated(self, selectors: list[Json]) -> Iterable[Json]:
        for role in self._documents["clusterroles"].values():
            labels = role["metadata"].get("labels") or {}
            if any(match_label_selector(selector, labels) for selector in selectors):
                yield role

    def _refresh(self) -> None:
        ends = tuple(collection.end_position() for collection in self._collections.values())
        if ends != self._seen:
            self._seen = ends
            self._documents = {
                kind: {entry.key: entry.decode() for entry in collection.entries()}
                for kind, collection in self._collections.items()
            }


def _names(binding: Json, user: SandboxUser, namespace: str) -> bool:
    return any(_is(subject, user, namespace) for subject in binding.get("subjects") or ())


def _is(subject: Json, user: SandboxUser, namespace: str) -> bool:
    name = subject.get("name", "")
    if subject.get("kind") == "Group":
        return name in user.groups
    if subject.get("kind") == "ServiceAccount":
        return user.name == f"{_PREFIX}{subject.get('namespace') or namespace}:{name}"
    return subject.get("kind") == "User" and user.name == name


def _covers(rule: Json, asked: RequestAttributes) -> bool:
    if not _has(rule.get("verbs"), asked.verb):
        return False
    if asked.path:
        return any(_path(pattern, asked.path) for pattern in rule.get("nonResourceURLs") or ())
    if not _has(rule.get("apiGroups"), asked.group) or not _resource(rule.get("resources"), asked.resource):
        return False
    names = rule.get("resourceNames")
    return not names or asked.name in names


def _has(values: list[str] | None, wanted: str) -> bool:
    return "*" in (values or ()) or wanted in (values or ())


def _resource(values: list[str] | None, wanted: str) -> bool:
    _, _, sub = wanted.partition("/")
    return _has(values, wanted) or bool(sub and f"*/{sub}" in (values or ()))


def _path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))
