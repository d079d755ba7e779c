"""The few facts every rule reads from a node's or pod's document."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from berth.demo.checker.quantity import amounts
from berth.demo.checker.requests import pod_requests

Document = Mapping[str, Any]

MILLI_GPU = "gpu-share.berth.dev/milli-gpu"


class NodeFacts(msgspec.Struct, frozen=True):
    """A node, with what it offers."""

    document: Document
    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, Fraction]


class CheckedPod(msgspec.Struct, frozen=True):
    """A pod that has a node and has not ended, with what it takes."""

    document: Document
    key: str
    node: str
    spec: Document
    annotations: Mapping[str, str]
    requests: Mapping[str, Fraction]

    @property
    def subject(self) -> str:
        """Name the pod as messages do."""
        return f"pod {self.key}"


def node_facts(node: Document) -> NodeFacts:
    """Read a node.

    Raises:
        UnreadableError: an amount is no quantity.
    """
    offered = amounts((node.get("status") or {}).get("allocatable"))
    return NodeFacts(node, name_of(node), _metadata(node).get("labels") or {}, offered)


def pod_facts(pod: Document) -> CheckedPod:
    """Read a bound pod.

    Raises:
        UnreadableError: an amount is no quantity.
    """
    annotations = _metadata(pod).get("annotations") or {}
    return CheckedPod(pod, key_of(pod), node_of(pod), pod.get("spec") or {}, annotations, pod_requests(pod))


def name_of(document: Document) -> str:
    """Give an object's name."""
    return str(_metadata(document).get("name", ""))


def key_of(pod: Document) -> str:
    """Give namespace/name."""
    return f"{_metadata(pod).get('namespace', '')}/{name_of(pod)}"


def uid_of(document: Document) -> str:
    """Give an object's uid, empty where it has none."""
    return str(_metadata(document).get("uid") or "")


def node_of(pod: Document) -> str:
    """Give the node that the pod is bound to, empty where it is not."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def has_ended(pod: Document) -> bool:
    """Tell whether the pod's containers are done for good, so that it takes nothing any more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _metadata(document: Document) -> Document:
    return document.get("metadata") or {}
