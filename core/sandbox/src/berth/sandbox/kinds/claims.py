"""Claims for devices, and templates of claims: what the API server fills in.

Source: pkg/apis/resource/v1/defaults.go (v1.36).
"""

from collections.abc import Iterator

from berth.sandbox.kinds.strategy import Context, RestStrategy
from berth.sandbox.store import Json


class ClaimStrategy(RestStrategy):
    """Each request, of a list of alternatives too, is for one device unless it says otherwise."""

    def prepare_create(self, document: Json, context: Context) -> None:
        """Set defaults."""
        spec = document.get("spec") or {}
        if context.resource.kind == "ResourceClaimTemplate":
            spec = spec.get("spec") or {}
        for request in _requests(spec):
            if not request.get("allocationMode"):
                request["allocationMode"] = "ExactCount"
            if request["allocationMode"] == "ExactCount" and not request.get("count"):
                request["count"] = 1
            for toleration in request.get("tolerations") or ():
                toleration.setdefault("operator", "Equal")

    def prepare_update(self, new: Json, _old: Json, context: Context) -> None:
        """Set defaults."""
        self.prepare_create(new, context)


def _requests(spec: Json) -> Iterator[Json]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly"):
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()
