"""A placed or assumed pod, with everything that is counted on its node worked out once."""

from collections.abc import Mapping
from typing import NamedTuple

from berth.objects.api_object import ObjectMeta
from berth.objects.pods.host_ports import HostPort, host_ports
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import Units, placed_requests, resized
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.pods.pod_volumes import PlacedVolume, placed_volumes
from berth.snapshot.affinity_terms import HeldTerms, placed_terms


class PodClass:
    """What a label selector can tell of a pod: pods of one class are counted together.

    It is hashed once: a pod may have as many labels as a request has room for.
    """

    __slots__ = ("_hash", "labels", "namespace", "terminating")

    def __init__(self, template: PodTemplate, *, terminating: bool) -> None:
        self.namespace = template.namespace
        self.labels: Mapping[str, str] = template.labels
        self.terminating = terminating
        self._hash = hash((self.namespace, frozenset(self.labels.items()), self.terminating))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PodClass)
            and self._hash == other._hash
            and self.namespace == other.namespace
            and self.terminating == other.terminating
            and self.labels == other.labels
        )

    def __hash__(self) -> int:
        return self._hash


def class_of(template: PodTemplate) -> PodClass:
    """The class of pods that are not being deleted. To be derived from the template."""
    return PodClass(template, terminating=False)


class Footprint(NamedTuple):
    """What counts of a pod on its node, as far as its template alone says it."""

    requests: Units
    non_zero: tuple[int, int]
    ports: tuple[HostPort, ...]
    claims: tuple[str, ...]
    volumes: tuple[PlacedVolume, ...]
    pod_class: PodClass
    held: tuple[HeldTerms, ...]


def _footprint(template: PodTemplate) -> Footprint:
    """The footprint of a pod that bears no name and has no status yet."""
    metadata = ObjectMeta(
        namespace=template.namespace, labels=template.labels, owner_references=template.owner_references
    )
    pod = Pod(metadata=metadata, template=template)
    return Footprint(
        *placed_requests(pod),
        host_ports(pod),
        claim_keys(pod),
        placed_volumes(pod),
        template.derived(class_of),
        placed_terms(pod),
    )


def _of_terminating(template: PodTemplate) -> Footprint:
    """The footprint of a pod whose deletion has begun."""
    return template.derived(_footprint)._replace(pod_class=PodClass(template, terminating=True))


class PodInfo:
    """The pod and its footprint: requests in the scheduler's units, ports, volumes, class, terms.

    Instances are never changed; an updated pod gets a new one. Pods of one template share their footprint,
    except sizes that a status gives and claims that bear the pod's name.
    """

    __slots__ = ("footprint", "pod")

    def __init__(self, pod: Pod, *, by_pod: bool = False) -> None:
        """Work out the footprint; a resize under way counts as in `pod_requests`."""
        template = pod.template
        footprint = template.derived(_of_terminating if pod.terminating else _footprint)
        if _resizes(pod):
            requests, non_zero = placed_requests(pod, by_pod=by_pod)
            footprint = footprint._replace(requests=requests, non_zero=non_zero)
        if template.has_ephemeral_claims:
            footprint = footprint._replace(volumes=placed_volumes(pod))
        self.pod = pod
        self.footprint: Footprint = footprint

    @property
    def uid(self) -> str:
        """The pod's UID, its key in the cache."""
        return self.pod.metadata.uid

    @property
    def requests(self) -> Units:
        """What it holds of each resource."""
        return self.footprint.requests

    @property
    def non_zero(self) -> tuple[int, int]:
        """CPU and memory that it counts for where it asks for none."""
        return self.footprint.non_zero

    @property
    def ports(self) -> tuple[HostPort, ...]:
        """The node's ports that it takes."""
        return self.footprint.ports

    @property
    def claims(self) -> tuple[str, ...]:
        """The PersistentVolumeClaims that it uses, each as `namespace/name`."""
        return self.footprint.claims

    @property
    def volumes(self) -> tuple[PlacedVolume, ...]:
        """Its volumes, as far as they count on a node."""
        return self.footprint.volumes

    @property
    def pod_class(self) -> PodClass:
        """Its class, by which it is counted."""
        return self.footprint.pod_class

    @property
    def held(self) -> tuple[HeldTerms, ...]:
        """The affinity terms that it has, those that count together in one."""
        return self.footprint.held

    def counts_like(self, other: "PodInfo") -> bool:
        """Whether both, which are versions of one pod, count the same on a node."""
        return (
            self.pod.template is other.pod.template
            and self.pod_class is other.pod_class
            and (self.requests is other.requests or self.requests == other.requests)
            and self.non_zero == other.non_zero
        )

    def __repr__(self) -> str:
        return f"PodInfo({self.pod.key})"


def _resizes(pod: Pod) -> bool:
    """Whether the status says that the pod holds something else than its spec asks for."""
    status, spec = pod.status, pod.spec
    return bool(
        status.resources is not None
        or resized(status.container_statuses, spec.containers)
        or resized(status.init_container_statuses, spec.init_containers)
    )


def claim_keys(pod: Pod) -> tuple[str, ...]:
    """The `namespace/name` of each PersistentVolumeClaim that a volume of the pod names."""
    claims = (v.get("persistentVolumeClaim") for v in pod.spec.volumes)
    return tuple(f"{pod.namespace}/{claim.get('claimName', '')}" for claim in claims if claim)
