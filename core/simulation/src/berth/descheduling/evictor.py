"""Which pods are never evicted, whatever strategies say of them: DefaultEvictor's rules.

Source: pkg/framework/plugins/defaultevictor/{defaultevictor,constraints}.go (descheduler v0.36).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from berth.config.descheduling.policy import DefaultEvictorArgs
from berth.config.descheduling.policy_file import USUAL_PROTECTIONS, compiled
from berth.config.duration import parse_duration
from berth.config.errors import PolicyError
from berth.descheduling.cluster import FAILED, ClusterObjects
from berth.descheduling.pod_facts import seconds_since
from berth.framework.pluralize import pluralize
from berth.objects.pods.node_pods import is_daemon, is_static
from berth.objects.pods.pod import Pod
from berth.objects.volumes.storage import PersistentVolumeClaim
from berth.objects.workloads import Namespace
from berth.simulation.cluster.disruption_budgets import Budgets
from berth.simulation.reading.admission import BUILT_IN
from berth.simulation.reading.kinds import PriorityClass

EVICT: Final = "descheduler.alpha.kubernetes.io/evict"
"""A pod with this annotation is not protected."""
PREFER_NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
CRITICAL: Final = 2_000_000_000
"""Priorities from here on are the system's. Source: pkg/apis/scheduling/types.go (Kubernetes v1.36)."""


@dataclass
class Evictor:
    """The rules of one profile for one cluster. `replicas` counts the pods of each owner, by its UID."""

    args: DefaultEvictorArgs
    cluster: ClusterObjects
    now: datetime
    replicas: Counter[str]
    budgets: Budgets
    _protections: frozenset[str] = field(init=False)
    _most_priority: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Settle what does not depend on the pod. Raises: PolicyError for an unknown priority class."""
        self._protections = _protections(self.args)
        threshold = self.args.priority_threshold
        if threshold is not None:
            self._most_priority = self._value_of(threshold.name) if threshold.name else threshold.value
        selectors = self.args.label_selector, self.args.namespace_label_selector
        self._labels, self._namespaces = (None if each is None else compiled(each) for each in selectors)
        least = self.args.min_pod_age
        self._least_age = parse_duration(least).seconds if least else None

    def _value_of(self, name: str) -> int:
        classes: dict[str, PriorityClass] = self.cluster.objects.of(PriorityClass)
        known = dict(BUILT_IN) | {key: each.value for key, each in classes.items()}
        if name not in known:
            where = "DefaultEvictor: priorityThreshold.name"
            raise PolicyError(
                f"{where}: the cluster has no PriorityClass {name[:60]!r}; name one that there is"
            )
        return known[name]

    def why_not(self, pod: Pod) -> str:
        """Why the pod must stay; empty where it may go."""
        if pod.terminating:
            return "it is being deleted already"
        if pod.spec.scheduling_group is not None:
            return "it belongs to a pod group, which moves whole or not at all"
        if is_static(pod):
            return "it is a static pod, which stays on its node"
        if EVICT in pod.metadata.annotations:
            return ""
        return next(self._protected(pod), "")

    def _protected(self, pod: Pod) -> Iterator[str]:
        annotations = pod.metadata.annotations
        if self.args.no_eviction_policy == "Mandatory" and PREFER_NO_EVICTION in annotations:
            yield f"its annotation {PREFER_NO_EVICTION} says so"
        checks: dict[str, Callable[[Pod], str]] = {
            "PodsWithLocalStorage": _local_storage,
            "SystemCriticalPods": self._critical,
            "DaemonSetPods": _daemon_set,
            "PodsWithPVC": self._claims,
            "PodsWithoutPDB": self._unbudgeted,
            "PodsWithResourceClaims": _resource_claims,
        }
        for name, check in checks.items():
            why = check(pod) if name in self._protections else ""
            if why:
                yield why
        if not pod.metadata.owner_references:
            failed = pod.status.phase == FAILED
            if "FailedBarePods" in self._protections or not failed:
                yield "it has no owner, which would make it anew"
        yield from self._unchosen(pod)

    def _unchosen(self, pod: Pod) -> Iterator[str]:
        if self._labels is not None and not self._labels.matches(pod.labels):
            yield "DefaultEvictor's labelSelector leaves it out"
        if self._namespaces is not None:
            namespace = self.cluster.objects.of(Namespace).get(pod.namespace)
            if namespace is None or not self._namespaces.matches(namespace.labels):
                yield "DefaultEvictor's namespaceLabelSelector leaves its namespace out"
        owners = pod.metadata.owner_references
        # A pod of several owners counts for none. Source: constraints.go.
        if self.args.min_replicas > 1 and len(owners) == 1:
            replicas = self.replicas[owners[0].uid]
            if replicas < self.args.min_replicas:
                pods = pluralize(replicas, "pod")
                yield f"its owner has {pods}, fewer than minReplicas {self.args.min_replicas}"
        started = pod.start_time
        young = started is None or seconds_since(started, self.now) < (self._least_age or 0)
        if self._least_age is not None and young:
            yield f"it is younger than minPodAge {self.args.min_pod_age}"

    def _critical(self, pod: Pod) -> str:
        if pod.priority >= CRITICAL:
            return "it is critical to the system"
        if self._most_priority is not None and pod.priority >= self._most_priority:
            return f"its priority {pod.priority} is not below the threshold {self._most_priority}"
        return ""

    def _claims(self, pod: Pod) -> str:
        wanted = {
            each.name for each in self.args.pod_protections.config.pods_with_pvc.protected_storage_classes
        }
        claims: dict[str, PersistentVolumeClaim] = self.cluster.objects.of(PersistentVolumeClaim)
        for volume in pod.spec.volumes:
            source = volume.get("persistentVolumeClaim")
            if not source:
                continue
            claim = claims.get(f"{pod.namespace}/{source.get('claimName', '')}")
            if not wanted or claim is None or claim.storage_class in wanted:
                return "it uses a PersistentVolumeClaim"
        return ""

    def _unbudgeted(self, pod: Pod) -> str:
        return "" if self.budgets.covering(pod) else "no PodDisruptionBudget covers it"


def _protections(args: DefaultEvictorArgs) -> frozenset[str]:
    chosen = args.pod_protections
    older = {
        "PodsWithLocalStorage": not args.evict_local_storage_pods,
        "SystemCriticalPods": not args.evict_system_critical_pods,
        "FailedBarePods": not args.evict_failed_bare_pods,
        "DaemonSetPods": True,
        "PodsWithPVC": args.ignore_pvc_pods,
        "PodsWithoutPDB": args.ignore_pods_without_pdb,
    }
    if not (chosen.extra_enabled or chosen.default_disabled):
        return frozenset(name for name, on in older.items() if on)
    return (frozenset(USUAL_PROTECTIONS) - {*chosen.default_disabled}) | {*chosen.extra_enabled}


def _local_storage(pod: Pod) -> str:
    local = any(volume.get("emptyDir") is not None or volume.get("hostPath") for volume in pod.spec.volumes)
    return "it has local storage" if local else ""


def _daemon_set(pod: Pod) -> str:
    return "a DaemonSet owns it" if is_daemon(pod) else ""


def _resource_claims(pod: Pod) -> str:
    return "it uses ResourceClaims" if pod.spec.resource_claims else ""
