"""Which object a request is about, as authorization names it.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go (Kubernetes v1.36).
"""

import re
from typing import NamedTuple

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get", "HEAD": "get"}
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_PROFILE = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,253}")


class ResourceAttributes(NamedTuple):
    """What a SubjectAccessReview asks about an object."""

    verb: str
    group: str
    version: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def refusal(self, user: str) -> str:
        """The message of an API server that refuses it."""
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        named = f' "{self.name}"' if self.name else ""
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return (
            f'{self.resource}.{self.group}{named} is forbidden: User "{user}" cannot {self.verb} resource '
            f'"{resource}" in API group "{self.group}" {where}'
        )

    def details(self) -> dict[str, str]:
        """The object as a Status names it."""
        found = {"name": self.name, "group": self.group, "kind": self.resource}
        return {key: value for key, value in found.items() if value}


def resource_of(method: str, path: str, *, watch: bool = False) -> ResourceAttributes | None:
    """The object below /apis/GROUP/VERSION that a request is about; None for every other path."""
    root, *parts = path.strip("/").split("/")
    if root != "apis" or len(parts) < 3:  # noqa: PLR2004 (group, version and a resource)
        return None
    group, version, *rest = parts
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:  # noqa: PLR2004 (a namespace, and a resource in it)
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = [*rest, "", ""][:3]
    verb = "list" if method in ("GET", "HEAD") and not name else _VERBS.get(method, method.lower())
    if verb == "list" and watch:
        verb = "watch"
    if method == "DELETE":
        verb = "delete" if name else "deletecollection"
    return ResourceAttributes(verb, group, version, resource, subresource, namespace, name)


def is_name(text: str) -> bool:
    """Whether an object may have that name."""
    return _NAME.fullmatch(text) is not None


def is_profile_name(text: str) -> bool:
    """Whether a path may name a profile so: a schedulerName may be what no object's name is."""
    return _PROFILE.fullmatch(text) is not None
