"""Hello keeps pods on their own team's nodes, and off nobody's where it can: a template to copy.

Teams are told by a label of nodes and pods.
"""

import sys
from typing import Any

from berth_sdk import Action, ArgumentError, ClusterEvent, EventInterest, Node, Plugin, Pod, Reason, main

OTHER_TEAM = Reason("node(s) belonged to another team")


class Hello(Plugin):
    """The plugin; its label may differ from profile to profile."""

    name = "hello"
    version = "0.1.0"
    events = (EventInterest("Node", (Action.ADD, Action.UPDATE_NODE_LABEL)),)
    pod_fields = ("/metadata/labels", "/spec/schedulerName")
    node_local = True
    arguments_schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "label": {
                "type": "string",
                "default": "team",
                "description": "the label of nodes and pods that names a team",
            }
        },
    }

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}

    def configure(self, arguments: dict[str, Any], profile: str) -> None:
        """Take over the label."""
        errors = [f"{key}: unknown argument" for key in arguments if key != "label"]
        label = arguments.get("label", "team")
        if not isinstance(label, str) or not label:
            errors.append(f"label: a label's name is wanted, not {label!r}")
        if errors:
            raise ArgumentError(*errors)
        self._labels[profile] = label

    def filter(self, pod: Pod, node: Node) -> Reason | None:
        """Turn down the nodes of other teams."""
        label = self._label_for(pod)
        return None if node.labels.get(label) in (None, pod.labels.get(label)) else OTHER_TEAM

    def score(self, pod: Pod, node: Node) -> int:
        """Prefer the team's own nodes to those that are nobody's."""
        return 100 if self._label_for(pod) in node.labels else 0

    def queueing_hint(self, pod: Pod, event: ClusterEvent) -> bool:
        """Try a pod again when a node is not another team's any more."""
        _, node = event.nodes()
        return node is None or self.filter(pod, node) is None

    def _label_for(self, pod: Pod) -> str:
        return self._labels[pod.spec.scheduler_name or "default-scheduler"]


if __name__ == "__main__":
    sys.exit(main(Hello()))
