"""A placed or assumed pod, with everything that is counted on its node worked out once."""

from collections.abc import Mapping

from berth.objects.host_ports import HostPort, host_ports
from berth.objects.pod import Pod
from berth.objects.pod_requests import Units, placed_requests
from berth.objects.pod_volumes import PlacedVolume, placed_volumes
from berth.snapshot.affinity_terms import HeldTerm, placed_terms


class PodClass:
    """What a label selector can tell of a pod: pods of one class are counted together.

    It is hashed once: a pod may have as many labels as a request has room for.
    """

    __slots__ = ("_hash", "labels", "namespace", "terminating")

    def __init__(self, pod: Pod) -> None:
        self.namespace = pod.namespace
        self.labels: Mapping[str, str] = pod.labels
        self.terminating = pod.terminating
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
        self.pod_class = PodClass(pod)
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
