"""Claims of pods that name a template: made with the pod, let go with it.

In upstream's tests controllers of kube-controller-manager do that: pkg/controller/resourceclaim and
garbagecollector (Kubernetes v1.36.2).
"""

import asyncio
from contextlib import suppress

from berth.client.errors import NotFoundError
from berth.client.resources import PODS, RESOURCE_CLAIMS, Resource
from tests.scheduler_perf.templates import copied

TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", namespaced=True)
ENTRY = "resource.kubernetes.io/pod-claim-name"
WORKERS = 10


class ClaimController:
    """Follows a watch of pods while it runs."""

    def __init__(self, requests, watch):
        self._requests = requests
        self._queue = asyncio.Queue()
        self._templates = {}
        self._claims = {}
        watch.followers.append(self._follow)

    def _follow(self, before, after):
        if (
            before is None
            and after
            and any("resourceClaimTemplateName" in c for c in after.spec.resource_claims)
        ):
            self._queue.put_nowait((self._make, after))
        elif after is None and before and before.metadata.uid in self._claims:
            self._queue.put_nowait((self._let_go, before))

    async def run(self):
        """Work without end."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self):
        while True:
            act, pod = await self._queue.get()
            # The pod, or its claim, may be gone by now.
            with suppress(NotFoundError):
                await act(pod)

    async def _make(self, pod):
        metadata, statuses = pod.metadata, []
        for entry in pod.spec.resource_claims:
            if template := entry.get("resourceClaimTemplateName"):
                document = await self._document(metadata, entry["name"], template)
                stored = await self._requests.create(RESOURCE_CLAIMS, metadata.namespace, document)
                statuses.append({"name": entry["name"], "resourceClaimName": stored["metadata"]["name"]})
        self._claims[metadata.uid] = [status["resourceClaimName"] for status in statuses]
        changes = {"status": {"resourceClaimStatuses": statuses}}
        try:
            await self._requests.merge(PODS, metadata.namespace, metadata.name, changes, "status")
        except NotFoundError:
            await self._let_go(pod)

    async def _document(self, pod, entry, template):
        key = pod.namespace, template
        if key not in self._templates:
            self._templates[key] = await self._requests.get(TEMPLATES, *key)
        spec = copied(self._templates[key]["spec"])
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        metadata = {
            **spec.get("metadata", {}),
            "generateName": f"{pod.name}-{entry}-",
            "annotations": {ENTRY: entry},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        }
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": spec["spec"],
        }

    async def _let_go(self, pod):
        for name in self._claims.pop(pod.metadata.uid, ()):
            where = RESOURCE_CLAIMS, pod.metadata.namespace, name
            await self._requests.merge(
                *where, {"status": {"allocation": None, "reservedFor": None}}, "status"
            )
            await self._requests.merge(*where, {"metadata": {"finalizers": None}})
            await self._requests.delete(*where)
