"""Follows the ConfigMap in which the API server says how it proves to be one.

Called by: the secure port, which asks for certificates of these authorities.

Source: staging/src/k8s.io/apiserver/pkg/server/options/authentication.go (Kubernetes v1.36), which watches
that one object; here it is read once a minute, as authorities change a few times a year and overlap for days.
"""

import asyncio
import logging
from typing import Protocol

import msgspec

from berth.aggregated_api.front_proxy import NO_TRUST, Trust, read_trust
from berth.client.errors import ClientError
from berth.client.resources import CONFIG_MAPS, Resource

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
READ_SECONDS = 60.0
FIRST_READ_SECONDS = 5.0


class ConfigMapReader(Protocol):
    """The part of the API client that is used here."""

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """One object. Raises: ClientError."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


class AuthenticationConfig:
    """`trust` is what the ConfigMap said when it was last read, and empty before."""

    def __init__(self, api: ConfigMapReader) -> None:
        self.trust: Trust = NO_TRUST
        self._api = api
        self._data: dict[str, str] = {}
        self._problem = ""

    async def follow(self) -> None:
        """Read again and again, until cancelled; more often while nothing could be read yet."""
        while True:
            await asyncio.sleep(READ_SECONDS if self._data else FIRST_READ_SECONDS)
            await self.read()

    async def read(self) -> None:
        """Read once; what can't be read leaves the trust as it is."""
        try:
            body = await self._api.get(CONFIG_MAPS, NAMESPACE, NAME)
            data = msgspec.json.decode(body, type=_ConfigMap).data
            if data != self._data:
                self.trust, self._data = read_trust(data), data
            self._problem = ""
        except (ClientError, msgspec.MsgspecError, ValueError) as error:
            # Said once, not once a minute: where it may not be read, bearer tokens are all there is.
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("front proxies not trusted config_map=%s err=%s", f"{NAMESPACE}/{NAME}", error)
