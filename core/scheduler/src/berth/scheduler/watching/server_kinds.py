"""Which kinds the API server has, and in which version, so that a scheduler starts without the others.

The first list of a kind that is not served would be tried again for ever, and the scheduler never be ready.

    GET /apis/GROUP/VERSION -> ServerKinds -> watches.py leaves absent ones out, with one line in the log
"""

import asyncio
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec

from berth.client import resources
from berth.client.errors import ClientError
from berth.client.resources import Resource, in_each_version

NEWER = (
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_SLICES,
    resources.DEVICE_CLASSES,
    resources.DEVICE_TAINT_RULES,
    resources.POD_GROUPS,
    resources.COMPOSITE_POD_GROUPS,
)
"""The kinds that some version since Kubernetes 1.33 does not serve, or not by default."""
_WITHOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        resources.RESOURCE_CLAIMS.api_version: "pods with resource claims wait",
        resources.DEVICE_TAINT_RULES.api_version: "DeviceTaintRules taint no device",
        resources.POD_GROUPS.api_version: "no pod is in a pod group",
        resources.COMPOSITE_POD_GROUPS.api_version: "pods whose group is in a tree wait",
    }
)
"""What is off without each of their versions."""
SECONDS = 5.0


class _Listed(msgspec.Struct):
    name: str = ""


class _Kinds(msgspec.Struct):
    resources: list[_Listed] = []


class DiscoveryReader(Protocol):
    """The part of the transport that is used here."""

    async def request(self, method: str, path: str, *, timeout_seconds: float | None = None) -> Any:
        """Send a request; gives the response, whatever its status."""


class ServerKinds(msgspec.Struct, frozen=True):
    """What an API server has of the newer kinds."""

    absent: frozenset[Resource] = frozenset()
    """Those that it does not serve in any version."""
    versions: Mapping[Resource, Resource] = msgspec.field(default_factory=dict)
    """Those that it serves in another version than `client.resources` names, as it serves them."""

    def served(self, kind: Resource) -> Resource:
        """Give the kind in the version that the server has."""
        return self.versions.get(kind, kind)


EVERY_KIND: Final = ServerKinds()


async def server_kinds(transport: DiscoveryReader) -> ServerKinds:
    """Give what the server says that it has of the newer kinds.

    A question without an answer counts as yes: the watches then find out, and try for as long as it takes.
    """
    choices = {kind: in_each_version(kind) for kind in NEWER}
    roots = sorted({choice.root for found in choices.values() for choice in found})
    names = dict(zip(roots, await asyncio.gather(*(_served(transport, root) for root in roots)), strict=True))
    served = {kind: _best(kind, found, names) for kind, found in choices.items()}
    return ServerKinds(
        frozenset(kind for kind, found in served.items() if found is None),
        {kind: found for kind, found in served.items() if found not in (None, kind)},
    )


def _best(
    kind: Resource, choices: Iterable[Resource], names: Mapping[str, frozenset[str] | None]
) -> Resource | None:
    """The best version that is served; the kind itself where that is not known, None where none is."""
    unknown = False
    for choice in choices:
        plurals = names[choice.root]
        if plurals is None:
            unknown = True
        elif choice.plural in plurals:
            return choice
    return kind if unknown else None


def consequences(kinds: Iterable[Resource]) -> str:
    """Give the versions of these kinds with what is off without them, for a line in the log."""
    plurals: dict[str, list[str]] = {}
    for kind in sorted(kinds):
        plurals.setdefault(kind.api_version, []).append(kind.plural)
    return "; ".join(
        f"{version} ({', '.join(names)}): {_WITHOUT[version]}" for version, names in plurals.items()
    )


async def _served(transport: DiscoveryReader, root: str) -> frozenset[str] | None:
    """The plurals of a group's version: none if there is no such version, None if that is not known."""
    body = await _read(transport, root)
    try:
        kinds = None if body is None else msgspec.json.decode(body or b"{}", type=_Kinds)
    except msgspec.DecodeError:
        return None
    return None if kinds is None else frozenset(each.name for each in kinds.resources)


async def _read(transport: DiscoveryReader, path: str) -> bytes | None:
    """The body of a good answer, an empty one where there is no such path, None without an answer."""
    try:
        response = await transport.request("GET", path, timeout_seconds=SECONDS)
    except ClientError:
        return None
    if response.status == HTTPStatus.NOT_FOUND:
        return b""
    return bytes(response.body) if response.status == HTTPStatus.OK else None
