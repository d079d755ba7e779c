"""What of a pod's spec only some plugins look at: they are not asked about pods that have none of it."""

from enum import Enum

from berth.objects.pods.pod_spec import PodSpec
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.pods.pod_volumes import UNCOUNTED
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY

BASIC = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})


class PodFeature(Enum):
    """A part of the spec that most pods leave out."""

    NODE_AFFINITY = "a node selector, or node affinity"
    HOST_PORTS = "ports of its node"
    VOLUMES = "volumes that tie it to claims, disks or drivers"
    DEVICES = "resource claims, or resources besides cpu, memory and ephemeral storage"
    KUBELET = "rules for restarts, or the node's network"


Features = frozenset[PodFeature]
EVERY_FEATURE = frozenset(PodFeature)


def features_of(template: PodTemplate) -> Features:
    """The features of the template's pods."""
    spec = template.spec
    affinity = spec.affinity
    found = []
    if spec.node_selector is not None or (affinity is not None and affinity.node_affinity is not None):
        found.append(PodFeature.NODE_AFFINITY)
    if spec.volumes and not all(map(UNCOUNTED.issuperset, spec.volumes)):
        found.append(PodFeature.VOLUMES)
    if spec.resource_claims or not BASIC.issuperset(spec.overhead or ()):
        found.append(PodFeature.DEVICES)
    if spec.host_network:
        found.append(PodFeature.KUBELET)
    return frozenset((*found, *_of_containers(spec)))


def _of_containers(spec: PodSpec) -> list[PodFeature]:
    found = []
    for container in (*spec.containers, *spec.init_containers):
        if container.ports and any(port.host_port > 0 for port in container.ports):
            found.append(PodFeature.HOST_PORTS)
        if not BASIC.issuperset(container.resources.requests or ()):
            found.append(PodFeature.DEVICES)
        if container.restart_policy_rules:
            found.append(PodFeature.KUBELET)
    return found
