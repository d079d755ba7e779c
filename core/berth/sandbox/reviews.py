"""Reviews of tokens and access. There is one user here, and it may do everything.

Source: pkg/registry/authentication and pkg/registry/authorization (v1.36).
"""

from typing import Any, Final

from berth.sandbox import content
from berth.sandbox.errors import ApiError
from berth.sandbox.request import Request, Response, json_response
from berth.sandbox.resources import Resource

_USER: Final = {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]}
_EVERYTHING: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def review(request: Request, resource: Resource) -> Response:
    """Answer a review with what it asks for, granted."""
    if resource.verbs != ("create",):
        raise ApiError.method_not_allowed()
    document = content.read_document(request, resource.kind)
    statuses: dict[str, Any] = {
        "TokenReview": {"authenticated": True, "user": _USER},
        "SelfSubjectReview": {"userInfo": _USER},
        "SelfSubjectRulesReview": _EVERYTHING,
    }
    document["kind"], document["apiVersion"] = resource.kind, resource.group_version
    document.setdefault("metadata", {})
    document["status"] = statuses.get(resource.kind, {"allowed": True})
    return json_response(document, 201)
