"""The attributes of a request that authorization reads: user, verb, resource or path.

Source: staging/src/k8s.io/apiserver/pkg/authorization/authorizer and endpoints/request (v1.36).
"""

import msgspec

from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.request import ReceivedRequest

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}
_BY_NAME = "metadata.name="


class SandboxUser(msgspec.Struct, frozen=True):
    """A user: a name and groups."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    def document(self) -> dict[str, object]:
        """Give the user as reviews show them."""
        found = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        return {key: value for key, value in found.items() if value}


class RequestAttributes(msgspec.Struct, frozen=True):
    """What is asked for: a verb on a resource, or on a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    """The plural, with its subresource behind a slash."""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        """Give it in the words of a refusal."""
        if self.path:
            return f'{self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'{self.verb} resource "{self.resource}" in API group "{self.group}" {where}'


def asked_of(
    request: ReceivedRequest, resource: ServedResource, namespace: str, name: str, subresource: str
) -> RequestAttributes:
    """Give what a request for a resource asks for."""
    full = f"{resource.plural}/{subresource}" if subresource else resource.plural
    verb = _VERBS.get(request.method, "")
    if not name and verb == "get":
        verb = "watch" if request.flag("watch") else "list"
        selected = request.query.get("fieldSelector", "")
        name = (
            selected.removeprefix(_BY_NAME) if selected.startswith(_BY_NAME) and "," not in selected else ""
        )
    elif request.method == "DELETE":
        verb = "delete" if name else "deletecollection"
    if resource.plural == "namespaces" and not resource.group and name:
        namespace = name
    return RequestAttributes(verb, resource.group, full, namespace, name)
