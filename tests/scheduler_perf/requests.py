"""Requests of the one who plays: kinds by discovery, objects as documents, many at a time."""

import asyncio
import json
import random

from berth.client.api import MERGE_PATCH, Api
from berth.client.errors import ConflictError, NotFoundError
from berth.client.resources import NAMESPACES, Resource
from berth.client.wire import encode

# As test/utils/runners.go CreatePod has it (Kubernetes v1.36.2).
AT_ONCE = 30
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


# These have the same fields; a server that serves the later one alone is given that.
SAME_FIELDS = {"resource.k8s.io/v1beta2": "resource.k8s.io/v1"}


class Requests:
    """The API server, as the operations use it."""

    def __init__(self, transport):
        self.api = Api(transport)
        self._kinds = {}
        self._priorities = {}
        self._names = set()

    async def kind(self, document):
        """Where the document's kind lives; its apiVersion is changed where only a later one is served.

        Raises: ClientError; LookupError where the server has no such kind.
        """
        version = document["apiVersion"]
        if version not in self._kinds:
            self._kinds[version] = await self._discovered(version)
        if document["kind"] not in self._kinds[version] and version in SAME_FIELDS:
            document["apiVersion"] = SAME_FIELDS[version]
            return await self.kind(document)
        if document["kind"] not in self._kinds[version]:
            raise LookupError(f"the API server has no {document['kind']} of {version}")
        return self._kinds[version][document["kind"]]

    async def _discovered(self, version):
        group, _, number = version.rpartition("/")
        try:
            listed = json.loads(
                await self.api.call("GET", f"/apis/{version}" if group else f"/api/{version}")
            )
        except NotFoundError:
            return {}
        return {
            each["kind"]: Resource(group, number, each["name"], each["namespaced"])
            for each in listed["resources"]
            if "/" not in each["name"]
        }

    def generated(self, prefix):
        """A name as an API server makes one of generateName, and none that was given before."""
        while (name := prefix + "".join(random.choices(SUFFIX, k=5))) in self._names:
            pass
        self._names.add(name)
        return name

    async def create(self, resource, namespace, document):
        """Create the object, and give it as it is stored."""
        return json.loads(await self.api.create(resource, namespace, encode(document)))

    async def replace(self, resource, namespace, document, subresource=""):
        """Replace the object, or a subresource of it."""
        name = document["metadata"]["name"]
        return json.loads(await self.api.update(resource, namespace, name, encode(document), subresource))

    async def merge(self, resource, namespace, name, changes, subresource=""):
        """Change parts of the object."""
        await self.api.patch(
            resource, namespace, name, encode(changes), content_type=MERGE_PATCH, subresource=subresource
        )

    async def get(self, resource, namespace, name):
        """One object."""
        return json.loads(await self.api.get(resource, namespace, name))

    async def delete(self, resource, namespace, name, options=None):
        """Delete the object."""
        await self.api.delete(resource, namespace, name, encode(options) if options else b"")

    async def delete_all(self, resource, namespace, labels=None, options=None):
        """Delete the objects of a namespace that have these labels."""
        query = (
            {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())} if labels else None
        )
        body = encode(options) if options else b""
        await self.api.call("DELETE", resource.collection(namespace), body, query=query)

    async def items(self, resource, namespace=""):
        """All objects of a kind."""
        return json.loads(await self.api.call("GET", resource.collection(namespace)))["items"]

    async def namespace(self, name, template=None):
        """See to it that there is such a namespace."""
        document = template or {"apiVersion": "v1", "kind": "Namespace"}
        metadata = {**document.get("metadata", {}), "name": name}
        try:
            await self.create(NAMESPACES, "", {**document, "metadata": metadata})
        except ConflictError as error:
            if error.reason != "AlreadyExists":
                raise

    async def prioritized(self, pod):
        """The pod with a class for its priority: upstream leaves out the admission plugin that wants one."""
        priority = pod["spec"].get("priority")
        if priority is None or pod["spec"].get("priorityClassName"):
            return pod
        if priority not in self._priorities:
            self._priorities[priority] = asyncio.ensure_future(self._class_of(priority))
        name = await self._priorities[priority]
        return {**pod, "spec": {**pod["spec"], "priorityClassName": name}}

    async def _class_of(self, priority):
        metadata = {"name": f"scheduler-perf-{priority}"}
        document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": priority}
        await self.create(await self.kind(document), "", {**document, "metadata": metadata})
        return metadata["name"]


async def many(count, create, at_once=AT_ONCE):
    """Run `create(index)` for each index, so many at a time, in order of their beginnings."""
    upcoming = iter(range(count))

    async def work():
        for index in upcoming:
            await create(index)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(count, at_once)):
            group.create_task(work())
