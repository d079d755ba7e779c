"""Reviews of tokens and access, and tokens for service accounts.

Source: pkg/registry/authentication, pkg/registry/authorization and pkg/registry/core/serviceaccount (v1.36).
"""

from collections.abc import Mapping
from typing import Any, Final

from berth.sandbox import meta
from berth.sandbox.access import RequestAccess
from berth.sandbox.access.identity import service_account
from berth.sandbox.attributes import RequestAttributes, SandboxUser
from berth.sandbox.bodies import content
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.request import CompleteAnswer, ReceivedRequest, json_response
from berth.sandbox.rest import RestStorage
from berth.sandbox.store import Json

# What a token says of itself; here it is good for as long as the sandbox runs.
_TOKEN_SECONDS: Final = 3600


def review(
    request: ReceivedRequest, resource: ServedResource, namespace: str, access: RequestAccess
) -> CompleteAnswer:
    """Answer a review."""
    if resource.verbs != ("create",):
        raise ApiError.method_not_allowed()
    document = content.read_document(request, resource.kind)
    document["kind"], document["apiVersion"] = resource.kind, resource.group_version
    document.setdefault("metadata", {})
    user = access.user(request.headers)
    document["status"] = _status(resource.kind, document.get("spec") or {}, user, namespace, access)
    return json_response(document, 201)


def _status(kind: str, spec: Json, user: SandboxUser, namespace: str, access: RequestAccess) -> Json:
    match kind:
        case "TokenReview":
            audiences = [str(each) for each in spec.get("audiences") or ()]
            found = access.by_token(str(spec.get("token", "")), audiences)
            if found is None:
                return {"authenticated": False}
            return {"authenticated": True, "user": found.document(), "audiences": audiences}
        case "SelfSubjectReview":
            return {"userInfo": user.document()}
        case "SelfSubjectRulesReview":
            return _rules(access.rules(user, str(spec.get("namespace", ""))))
        case "SelfSubjectAccessReview":
            return _verdict(access, user, spec, namespace)
    user = SandboxUser(str(spec.get("user", "")), tuple(spec.get("groups") or ()))
    return _verdict(access, user, spec, namespace)


def _verdict(access: RequestAccess, user: SandboxUser, spec: Json, namespace: str) -> Json:
    if access.allows(user, _asked(spec, namespace)):
        return {"allowed": True}
    return {"allowed": False, "reason": "no RBAC policy matched"}


def _asked(spec: Mapping[str, Any], namespace: str) -> RequestAttributes:
    path = spec.get("nonResourceAttributes")
    if path:
        return RequestAttributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    on = spec.get("resourceAttributes") or {}
    sub = on.get("subresource")
    return RequestAttributes(
        on.get("verb", ""),
        on.get("group", ""),
        f"{on.get('resource', '')}/{sub}" if sub else on.get("resource", ""),
        on.get("namespace") or namespace,
        on.get("name", ""),
    )


def _rules(rules: list[Json]) -> Json:
    return {
        "resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
        "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
        "incomplete": False,
    }


def issue_token(
    rest: RestStorage, request: ReceivedRequest, namespace: str, name: str, access: RequestAccess
) -> CompleteAnswer:
    """Make a token for a service account.

    Raises: ApiError when there is no such account.
    """
    if request.method != "POST":
        raise ApiError.method_not_allowed()
    accounts = rest.catalogue.get("", "v1", "serviceaccounts")
    assert accounts is not None
    metadata = rest.read(accounts, namespace, name).decode()["metadata"]
    document = content.read_document(request, "TokenRequest")
    audiences = (document.get("spec") or {}).get("audiences") or ()
    token = access.issue(service_account(namespace, name, metadata["uid"]), audiences)
    status = {"token": token, "expirationTimestamp": meta.timestamp(rest.clock() + _TOKEN_SECONDS)}
    head = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
    kept = document.get("metadata") or {}
    return json_response({**document, **head, "metadata": kept, "status": status}, 201)
