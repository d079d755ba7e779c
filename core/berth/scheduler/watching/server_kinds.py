"""Which kinds an older API server does not have, so that a scheduler starts without them.

The first list of a kind that is not served would be tried again for ever, and the scheduler never be ready.

    GET /version, /apis/GROUP/VERSION -> absent kinds -> watches.py leaves them out, with one line in the log
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec

from berth.client import resources
from berth.client.errors import ClientError
from berth.client.resources import Resource

log = logging.getLogger(__name__)

NEWER = (
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_SLICES,
    resources.DEVICE_CLASSES,
    resources.DEVICE_TAINT_RULES,
    resources.POD_GROUPS,
)
"""The kinds that some version since Kubernetes 1.33 does not serve, or not by default."""
_WITHOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        resources.RESOURCE_CLAIMS.api_version: "pods with resource claims wait",
        resources.DEVICE_TAINT_RULES.api_version: "DeviceTaintRules taint no device",
        resources.POD_GROUPS.api_version: "no pod is in a pod group",
    }
)
"""What is off without each of their versions."""
SECONDS = 5.0


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _Listed(msgspec.Struct):
    name: str = ""


class _Kinds(msgspec.Struct):
    resources: list[_Listed] = []


class Answers(Protocol):
    """The part of the transport that is used here."""

    async def request(self, method: str, path: str, *, timeout_seconds: float | None = None) -> Any:
        """Send a request; gives the response, whatever its status."""


async def absent_kinds(transport: Answers) -> frozenset[Resource]:
    """Give the newer kinds that the server says it does not have; the log has its version.

    A question without an answer counts as yes: the watches then find out, and try for as long as it takes.
    """
    roots = sorted({kind.root for kind in NEWER})
    version = asyncio.create_task(_version(transport))
    served = await asyncio.gather(*(_served(transport, root) for root in roots))
    if found := await version:
        log.info("The API server is of Kubernetes %s", found)
    names = dict(zip(roots, served, strict=True))
    return frozenset(kind for kind in NEWER if not _has(names[kind.root], kind))


def consequences(kinds: Iterable[Resource]) -> str:
    """Give the versions of these kinds with what is off without them, for a line in the log."""
    plurals: dict[str, list[str]] = {}
    for kind in sorted(kinds):
        plurals.setdefault(kind.api_version, []).append(kind.plural)
    return "; ".join(
        f"{version} ({', '.join(names)}): {_WITHOUT[version]}" for version, names in plurals.items()
    )


def _has(names: frozenset[str] | None, kind: Resource) -> bool:
    return names is None or kind.plural in names


async def _version(transport: Answers) -> str:
    body = await _read(transport, "/version")
    try:
        return msgspec.json.decode(body or b"{}", type=_Version).git_version
    except msgspec.DecodeError:
        return ""


async def _served(transport: Answers, root: str) -> frozenset[str] | None:
    """The plurals of a group's version: none if there is no such version, None if that is not known."""
    body = await _read(transport, root)
    try:
        kinds = None if body is None else msgspec.json.decode(body or b"{}", type=_Kinds)
    except msgspec.DecodeError:
        return None
    return None if kinds is None else frozenset(each.name for each in kinds.resources)


async def _read(transport: Answers, path: str) -> bytes | None:
    """The body of a good answer, an empty one where there is no such path, None without an answer."""
    try:
        response = await transport.request("GET", path, timeout_seconds=SECONDS)
    except ClientError:
        return None
    if response.status == HTTPStatus.NOT_FOUND:
        return b""
    return bytes(response.body) if response.status == HTTPStatus.OK else None
