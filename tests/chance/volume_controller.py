"""A stand-in for the controller that binds volumes and has new ones made: the sandbox has none."""

from berth.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from tests.chance.draw import thing

SELECTED = "volume.kubernetes.io/selected-node"
BOUND = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}


async def bind_volumes(cluster, items):
    """Finish the bindings that a scheduler has begun; `items` lists a resource's objects."""
    volumes = await items(cluster, PERSISTENT_VOLUMES)
    taken = {
        each["spec"]["claimRef"]["name"]: each["metadata"]["name"]
        for each in volumes
        if "claimRef" in each["spec"]
    }
    for claim in await items(cluster, PERSISTENT_VOLUME_CLAIMS):
        if claim["spec"].get("volumeName"):
            continue
        name = claim["metadata"]["name"]
        node = claim["metadata"].get("annotations", {}).get(SELECTED)
        if name not in taken and node:
            await cluster.create(PERSISTENT_VOLUMES, [_made_for(claim, node)])
            taken[name] = f"made-{name}"
        if name in taken:
            patch = BOUND | {"spec": {"volumeName": taken[name]}}
            await cluster.patch(PERSISTENT_VOLUME_CLAIMS, name, patch, namespace="default")


def _made_for(claim, node):
    asked, name = claim["spec"], claim["metadata"]["name"]
    named = {"key": "metadata.name", "operator": "In", "values": [node]}
    spec = {
        "capacity": asked["resources"]["requests"],
        "accessModes": asked["accessModes"],
        "storageClassName": asked["storageClassName"],
        "volumeMode": asked["volumeMode"],
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name},
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [named]}]}},
    }
    return thing("PersistentVolume", f"made-{name}", spec=spec)
