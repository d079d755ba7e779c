"""Pods to be created, with the volumes that an operation gives them.

Source: test/utils/runners.go MakePodSpec, CreatePod, CreatePodWithPersistentVolume (Kubernetes v1.36.2).
"""

from berth.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from tests.scheduler_perf.errors import PerfError
from tests.scheduler_perf.requests import many
from tests.scheduler_perf.templates import ObjectTemplate, copied

RESOURCES = {"cpu": "100m", "memory": "500Mi"}
BASE_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.2",
                "ports": [{"containerPort": 80}],
                "resources": {"requests": RESOURCES, "limits": RESOURCES},
            }
        ]
    },
}


class PodBatch:
    """The pods of one operation."""

    def __init__(self, requests, operation, namespace, pod_template=None):
        self._requests = requests
        self._namespace = namespace
        self.count = operation["count"] or 0
        path = operation["podTemplatePath"] or pod_template
        self._pod = ObjectTemplate(path, operation["templateParams"]) if path else None
        volume, claim = (
            operation["persistentVolumeTemplatePath"],
            operation["persistentVolumeClaimTemplatePath"],
        )
        self._volume = ObjectTemplate(volume) if volume else None
        self._claim = ObjectTemplate(claim) if claim else None
        if claim and not volume:
            raise PerfError(f"{operation.place}: persistentVolumeTemplatePath: must be set with a claim's")

    async def create(self):
        """Create them all."""
        await many(self.count, self._create)

    async def _create(self, index):
        pod = self._pod.document(index, self.count) if self._pod else copied(BASE_POD)
        if self._claim:
            name = f"pvc-{index}"
            await self._create_volume(index, name)
            pod["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": name}}]
        await self._requests.create(PODS, self._namespace, await self._requests.prioritized(pod))

    async def _create_volume(self, index, claim_name):
        """A claim and a volume that are bound to each other."""
        namespace = self._namespace
        volume, claim = self._volume.document(), self._claim.document()
        name = f"{namespace}-vol-{index}"
        volume.setdefault("metadata", {})["name"] = name
        claim.setdefault("metadata", {})["name"] = claim_name
        for source in ("csi", "awsElasticBlockStore"):
            if source in volume["spec"]:
                volume["spec"][source]["volumeHandle" if source == "csi" else "volumeID"] = name
        volume["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace,
            "name": claim_name,
        }
        claim["spec"]["volumeName"] = name
        for resource, where, document in (
            (PERSISTENT_VOLUME_CLAIMS, namespace, claim),
            (PERSISTENT_VOLUMES, "", volume),
        ):
            stored = await self._requests.create(resource, where, document)
            bound = {**stored.get("status", {}), "phase": "Bound"}
            await self._requests.replace(resource, where, {**stored, "status": bound}, "status")
