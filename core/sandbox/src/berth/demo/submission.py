"""Creating a data set's objects through the API, as any client would."""

import asyncio
from collections.abc import Iterable
from itertools import islice

from berth.client.api import Api
from berth.client.resources import NAMESPACES, NODES, POD_GROUPS, PODS, Resource
from berth.client.wire import encode
from berth.demo.dataset.source import Document

AT_ONCE = 16

RESOURCES = {"Namespace": NAMESPACES, "Node": NODES, "Pod": PODS, "PodGroup": POD_GROUPS}


async def create_all(api: Api, documents: Iterable[Document]) -> int:
    """Create the objects in order, a few at a time; how many there were.

    Raises: ClientError.
    """
    source = iter(documents)
    created = 0
    while batch := list(islice(source, AT_ONCE)):
        await asyncio.gather(*(_create(api, document) for document in batch))
        created += len(batch)
    return created


async def _create(api: Api, document: Document) -> None:
    resource: Resource = RESOURCES[document["kind"]]
    if "apiVersion" in document:
        resource = resource._replace(version=document["apiVersion"].rpartition("/")[2])
    namespace = document["metadata"].get("namespace", "") if resource.namespaced else ""
    await api.create(resource, namespace, encode(document))
