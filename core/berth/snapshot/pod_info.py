"""A placed or assumed pod, with everything that is counted on its node worked out once."""

from typing import NamedTuple

from berth.objects.host_ports import HostPort, host_ports
from berth.objects.pod import Pod
from berth.objects.pod_requests import Units, placed_requests
from berth.objects.pod_volumes import PlacedVolume, placed_volumes
from berth.snapshot.affinity_terms import HeldTerm, placed_terms


class PodClass(NamedTuple):
    """What a label selector can tell of a pod: pods of one class are counted together."""

    namespace: str
    labels: tuple[tuple[str, str], ...]
    terminating: bool


class PodInfo:
    """The pod and its footprint: requests in the scheduler's units, ports, volumes, class, terms.

    Instances are never changed; an updated pod gets a new one.
    """

    __slots__ = ("claims", "non_zero", "pod", "pod_class", "ports", "requests", "terms", "volumes")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.requests: Units
        self.non_zero: tuple[int, int]
        self.requests, self.non_zero = placed_requests(pod)
        self.ports: tuple[HostPort, ...] = host_ports(pod)
        self.claims: tuple[str, ...] = claim_keys(pod)
        self.volumes: tuple[PlacedVolume, ...] = placed_volumes(pod)
        self.pod_class = PodClass(pod.namespace, tuple(sorted(pod.labels.items())), pod.terminating)
        self.terms: tuple[HeldTerm, ...] = placed_terms(pod)

    def followed_by(self, pod: Pod) -> "PodInfo":
        """A newer version of the same pod; its footprint is worked out only where it can have changed."""
        old = self.pod
        same = (
            pod.spec == old.spec
            and pod.metadata.labels == old.metadata.labels
            and pod.terminating == old.terminating
            and not (_resizes(pod) or _resizes(old))
        )
        if not same:
            return PodInfo(pod)
        newer = PodInfo.__new__(PodInfo)
        newer.pod = pod
        newer.requests, newer.non_zero, newer.pod_class = self.requests, self.non_zero, self.pod_class
        newer.ports, newer.claims, newer.volumes = self.ports, self.claims, self.volumes
        newer.terms = self.terms
        return newer

    @property
    def uid(self) -> str:
        """The pod's UID, its key in the cache."""
        return self.pod.metadata.uid

    @property
    def has_affinity(self) -> bool:
        """Whether the pod has a podAffinity or podAntiAffinity, even one without terms."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        )

    def __repr__(self) -> str:
        return f"PodInfo({self.pod.key})"


def _resizes(pod: Pod) -> bool:
    """Whether the status may say that the pod holds something else than its spec asks for."""
    status = pod.status
    return status.resources is not None or any(
        container.resources is not None
        for container in (*status.container_statuses, *status.init_container_statuses)
    )


def claim_keys(pod: Pod) -> tuple[str, ...]:
    """The `namespace/name` of each PersistentVolumeClaim that a volume of the pod names."""
    claims = (v.get("persistentVolumeClaim") for v in pod.spec.volumes)
    return tuple(f"{pod.namespace}/{claim.get('claimName', '')}" for claim in claims if claim)
