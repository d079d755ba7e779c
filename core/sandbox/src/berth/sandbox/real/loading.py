"""Objects of a file, created through the API with the status that the file gives them."""

import asyncio
import json
from collections.abc import Iterable
from itertools import islice
from typing import Final

from berth.client.api import Api
from berth.client.errors import ClientError, ConflictError
from berth.client.resources import NAMESPACES, Resource
from berth.client.wire import encode
from berth.sandbox.errors import SandboxError
from berth.sandbox.kinds.catalogue import Catalogue
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.store import Json

AT_ONCE: Final = 16
_CATALOGUE: Final = Catalogue()


async def load(api: Api, documents: Iterable[Json]) -> int:
    """Create the objects, a few at a time; existing ones are left alone. Gives how many were created.

    Raises: SandboxError with the object's name when one is turned down.
    """
    source = iter(documents)
    namespaces: set[str] = set()
    created = 0
    while batch := list(islice(source, AT_ONCE)):
        for document in batch:
            await _ensure_namespace(api, document, namespaces)
        created += sum(await asyncio.gather(*(_create(api, document) for document in batch)))
    return created


async def _ensure_namespace(api: Api, document: Json, known: set[str]) -> None:
    served = _served(document)
    namespace = _namespace(document)
    if served.namespaced and namespace not in known:
        known.add(namespace)
        head = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}}
        await _create(api, head)


async def _create(api: Api, document: Json) -> int:
    served = _served(document)
    at = Resource(served.group, served.version, served.plural, served.namespaced)
    metadata = {**document["metadata"]}
    metadata.pop("resourceVersion", None)
    namespace = _namespace(document) if served.namespaced else ""
    try:
        await api.create(at, namespace, encode({**document, "metadata": metadata}))
        if served.has_status and document.get("status") and at != NAMESPACES:
            status = json.dumps({"status": document["status"]}).encode()
            await api.patch(at, namespace, metadata["name"], status, subresource="status")
    except ClientError as error:
        if isinstance(error, ConflictError) and error.reason == "AlreadyExists":
            return 0
        raise SandboxError(f"{served.kind} {metadata.get('name')}: {error}") from None
    return 1


def _namespace(document: Json) -> str:
    return str(document["metadata"].get("namespace") or "default")


def _served(document: Json) -> ServedResource:
    found = _CATALOGUE.by_kind(str(document.get("apiVersion")), str(document.get("kind")))
    if found is None:
        raise SandboxError(f"no resource of kind {document.get('kind')!r} in {document.get('apiVersion')!r}")
    return found
