"""What a pod requires of its node: its node selector and its required node affinity.

Source: component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go RequiredNodeAffinity (Kubernetes
v1.36).
"""

from typing import NamedTuple

from berth.objects.node import Node
from berth.objects.node_selector import NodeAffinity, NodeSelector
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps, at_once
from berth.snapshot.columns.growing import Mask
from berth.snapshot.node_matching import matching_labels, matching_nodes, node_matches
from berth.snapshot.snapshot import Snapshot

NO_AFFINITY = NodeAffinity()


class RequiredAffinity(NamedTuple):
    """Labels a node must have, as sorted pairs, and terms of which one must hold; None asks for no term."""

    labels: tuple[tuple[str, str], ...]
    terms: NodeSelector | None

    @classmethod
    def of(cls, pod: Pod) -> "RequiredAffinity":
        """What this pod requires."""
        selector, affinity = pod.spec.node_selector, pod.spec.affinity
        node_affinity = affinity.node_affinity if affinity else None
        return cls(
            tuple(sorted(selector.items())) if selector else (),
            node_affinity.required if node_affinity else None,
        )

    @property
    def empty(self) -> bool:
        """Whether every node will do."""
        return not self.labels and self.terms is None

    def matching(self, nodes: Snapshot) -> Mask:
        """Which nodes will do; terms that do not parse hold nowhere.

        Shapes: result bool (n,).
        """
        return at_once(self.in_steps(nodes))

    def in_steps(self, nodes: Snapshot) -> Steps[Mask]:
        """The same as `matching`, in steps."""
        mask = matching_labels(nodes, dict(self.labels))
        if self.terms is not None:
            mask &= yield from matching_nodes(nodes, self.terms)
        return mask

    def answer(self, nodes: Snapshot) -> Mask:
        """The same as `matching`, worked out once for as long as the nodes stay as they are.

        Shapes: result bool (n,).
        """
        return nodes.answer(self, self.matching)

    def matches(self, node: Node) -> bool:
        """Whether one node will do.

        Raises: InvalidSelectorError where it does not and some term does not parse.
        """
        if any(node.labels.get(key) != value for key, value in self.labels):
            return False
        return self.terms is None or node_matches(node, self.terms)
