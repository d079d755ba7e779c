"""Hello keeps pods on their own team's nodes, and off nodes without a team where it can: a template to copy.

Teams are known by a label of nodes and pods.
"""

import sys
from dataclasses import dataclass
from typing import Annotated

from berth_sdk import Action, ClusterEvent, EventInterest, Meta, Node, Plugin, Pod, Reason, main

OTHER_TEAM = Reason("node(s) belonged to another team")
LABEL = Meta(min_length=1, description="the label of nodes and pods that names a team")


@dataclass(frozen=True)
class Settings:
    """What a profile may say."""

    label: Annotated[str, LABEL] = "team"


class Hello(Plugin):
    """The plugin; its label may differ from profile to profile."""

    name = "hello"
    version = "0.1.0"
    arguments = Settings
    events = (EventInterest("Node", (Action.ADD, Action.UPDATE_NODE_LABEL)),)
    pod_fields = ("/metadata/labels", "/spec/schedulerName")
    node_local = True

    def filter(self, pod: Pod, node: Node) -> Reason | None:
        """Turn down the nodes of other teams."""
        label = self.arguments_of(pod).label
        return None if node.labels.get(label) in (None, pod.labels.get(label)) else OTHER_TEAM

    def score(self, pod: Pod, node: Node) -> int:
        """Prefer the team's own nodes to those without a team."""
        return 100 if self.arguments_of(pod).label in node.labels else 0

    def queueing_hint(self, pod: Pod, event: ClusterEvent) -> bool:
        """Try a pod again when a node is not another team's any more."""
        _, node = event.nodes()
        return node is None or self.filter(pod, node) is None


if __name__ == "__main__":
    sys.exit(main(Hello()))
