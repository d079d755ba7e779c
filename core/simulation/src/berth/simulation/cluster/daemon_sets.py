"""The pods of a DaemonSet: one on each eligible node, as its controller keeps them.

    node --name, labels and taints fit--> a pod for it --template changes--> another, `unavailable` at a time
         --an untolerated NoExecute taint, or gone--> no pod

A DaemonSet's `maxSurge` counts as its `maxUnavailable`: no node has two of its pods.

Source: pkg/controller/daemon (Kubernetes v1.36): NodeShouldRunDaemonPod, AddOrUpdateDaemonPodTolerations,
ReplaceDaemonSetPodNodeNameNodeAffinity, rollingUpdate.
Called by: workloads.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from berth.objects.label_selector import InvalidSelectorError, Requirement
from berth.objects.node import Node
from berth.objects.node_selector import NodeAffinity, NodeSelector, NodeSelectorTerm
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import Affinity, PodSpec
from berth.objects.taint import TaintEffect, Toleration
from berth.plugins.required_affinity import RequiredAffinity
from berth.simulation.cluster.replicated import ReplicatedPods
from berth.simulation.reading.revisions import Document, Replacing, Revision
from berth.snapshot.node_matching import NAME_FIELD

_NO_EXECUTE: Final = frozenset({TaintEffect.NO_EXECUTE})
_HARD: Final = frozenset({TaintEffect.NO_EXECUTE, TaintEffect.NO_SCHEDULE})
_TOLERATED: Final = (
    ("not-ready", TaintEffect.NO_EXECUTE),
    ("unreachable", TaintEffect.NO_EXECUTE),
    ("disk-pressure", TaintEffect.NO_SCHEDULE),
    ("memory-pressure", TaintEffect.NO_SCHEDULE),
    ("pid-pressure", TaintEffect.NO_SCHEDULE),
    ("unschedulable", TaintEffect.NO_SCHEDULE),
)
_ON_HOST_NETWORK: Final = ("network-unavailable", TaintEffect.NO_SCHEDULE)


class DaemonSet:
    """One DaemonSet; `nodes` gives all nodes, `node` the one of a name."""

    def __init__(
        self, pods: ReplicatedPods, nodes: Callable[[], list[Node]], node: Callable[[str], Node | None]
    ) -> None:
        self._pods, self._nodes, self._node = pods, nodes, node
        self._revision: Revision | None = None
        self._on: dict[str, Pod] = {}
        """Its pods, by node."""
        self._node_of: dict[str, str] = {}
        """By the pod's key."""
        self._waiting: set[str] = set()
        """The nodes whose pod has yet to be bound."""
        self._template_on: dict[str, Document | None] = {}
        """What the pod of each node is of."""
        self._old: dict[str, None] = {}
        """The nodes whose pod is of an older template and has its node."""

    def apply(self, revision: Revision) -> None:
        """Create, replace and remove pods as this revision of the DaemonSet requires."""
        self._revision = revision
        if revision.pod is None:
            for name in list(self._on):
                self.lost(name)
            return
        for node in self._nodes():
            self.saw(node)
        older = [name for name, template in self._template_on.items() if template != revision.template]
        if revision.rollout.replacing is Replacing.NEVER:
            older = []
        self._old = {name: None for name in older if name not in self._waiting}
        # A pending pod is not available anyway: it is replaced at once.
        for name in older:
            if name in self._waiting:
                self._replace(name, revision)
        self._go_on(revision)

    def saw(self, node: Node) -> None:
        """Handle a node that was added or changed."""
        revision = self._revision
        if revision is None or revision.pod is None:
            return
        if node.name not in self._on:
            if _may_run(revision.pod, node, _HARD):
                self._make(node.name, revision)
        elif not _may_run(revision.pod, node, _NO_EXECUTE):
            self.lost(node.name)

    def lost(self, name: str) -> None:
        """Handle a node that was deleted, or whose pod is evicted."""
        if name in self._on:
            self._pods.remove(self._forget(name))

    def bound(self, pod: Pod) -> None:
        """Handle a pod of the DaemonSet that was bound."""
        self._waiting.discard(self._node_of.get(pod.key, ""))
        if self._revision is not None:
            self._go_on(self._revision)

    def removed(self, pod: Pod) -> None:
        """Handle a deleted pod: if it belongs to this DaemonSet, its node gets a new one."""
        name = self._node_of.get(pod.key)
        if name is not None:
            self._forget(name)
            node = self._node(name)
            if node is not None:
                self.saw(node)

    def _go_on(self, revision: Revision) -> None:
        """Replace pods of an older template, within `maxUnavailable`."""
        most = max(1, revision.rollout.unavailable.of(len(self._on), up=True))
        while self._old and len(self._waiting) < most:
            self._replace(next(iter(self._old)), revision)

    def _replace(self, name: str, revision: Revision) -> None:
        self.lost(name)
        self._make(name, revision)

    def _make(self, name: str, revision: Revision) -> None:
        assert revision.pod is not None, "a revision with a template has a pod"
        pod = self._pods.make(_for_node(revision.pod, name), None)
        self._on[name], self._template_on[name] = pod, revision.template
        self._node_of[pod.key] = name
        self._waiting.add(name)

    def _forget(self, name: str) -> Pod:
        pod = self._on.pop(name)
        del self._node_of[pod.key], self._template_on[name]
        self._waiting.discard(name)
        self._old.pop(name, None)
        return pod


def _may_run(pod: Pod, node: Node, effects: AbstractSet[str]) -> bool:
    """Whether the pod belongs on the node, with respect to taints of these effects."""
    if pod.node_name not in ("", node.name):
        return False
    try:
        matches = RequiredAffinity.of(pod).matches(node)
    except InvalidSelectorError:
        matches = False
    tolerations = _tolerations(pod.spec)
    return matches and all(
        any(each.tolerates(taint) for each in tolerations)
        for taint in node.spec.taints
        if taint.effect in effects
    )


def _tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """The template's tolerations, and those that the controller adds to every pod."""
    named = (*_TOLERATED, _ON_HOST_NETWORK) if spec.host_network else _TOLERATED
    added = (Toleration(f"node.kubernetes.io/{key}", "Exists", effect=effect) for key, effect in named)
    return (*spec.tolerations, *(each for each in added if each not in spec.tolerations))


def _for_node(like: Pod, name: str) -> Pod:
    """The pod as the controller creates it for that node."""
    only = NodeSelectorTerm(match_fields=(Requirement(NAME_FIELD, "In", (name,)),))
    affinity = like.spec.affinity or Affinity()
    required = msgspec.structs.replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector((only,)),
    )
    affinity = msgspec.structs.replace(affinity, node_affinity=required)
    return like.with_spec(
        msgspec.structs.replace(like.spec, affinity=affinity, tolerations=_tolerations(like.spec))
    )
