"""The APIService through which pods are explained: the API server is to trust what schedulers serve with.

It is installed together with the operator (kustomize/components/explain-api), and only the authority in it
is kept: that is the operator's own, and renewed.

Called by: reconciler, with each authority that it has made sure of.
"""

from base64 import b64encode
from typing import Final

import msgspec

from berth.client.api import Api
from berth.client.errors import NotFoundError
from berth.client.resources import Resource

API_SERVICES: Final = Resource("apiregistration.k8s.io", "v1", "apiservices", namespaced=False)
NAME: Final = "v1alpha1.explain.berth.dev"


class ExplainApi:
    """Keeps the authority in the APIService; without a Service behind it there is nothing to keep."""

    def __init__(self, api: Api, service: str) -> None:
        self._api = api
        self._service = service

    async def keep(self, authority: str) -> None:
        """Have the API server trust the authority, certificates in PEM. Raises: ClientError."""
        if not self._service:
            return
        bundle = b64encode(authority.encode()).decode()
        try:
            found = msgspec.json.decode(await self._api.get(API_SERVICES, "", NAME), type=dict[str, object])
            spec = found.get("spec")
            if isinstance(spec, dict) and spec.get("caBundle") != bundle:
                body = msgspec.json.encode({"spec": {"caBundle": bundle}})
                await self._api.patch(API_SERVICES, "", NAME, body)
        except NotFoundError:  # not installed yet, or taken away: looked for again with the next Scheduler
            return
