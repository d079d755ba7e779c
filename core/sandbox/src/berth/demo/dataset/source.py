"""What every source of nodes and pods gives."""

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

Document = dict[str, Any]


class Objects(msgspec.Struct, frozen=True):
    """Kubernetes objects as JSON-able documents, each list in the order of the source."""

    nodes: list[Document] = msgspec.field(default_factory=list)
    pods: list[Document] = msgspec.field(default_factory=list)
    others: list[Document] = msgspec.field(default_factory=list)

    def in_creation_order(self) -> Iterator[Document]:
        """Yield what others need first: namespaces, definitions, then the rest, nodes and, last, pods."""
        early = ("Namespace", "CustomResourceDefinition")
        for kind in early:
            yield from (other for other in self.others if other["kind"] == kind)
        yield from (other for other in self.others if other["kind"] not in early)
        yield from self.nodes
        yield from self.pods


class Dataset(Protocol):
    """A source of nodes and pods."""

    def load(self) -> Objects:
        """Give all objects, or none.

        Raises:
            DatasetError: the source is broken; its text is one line that says where and what to do.
        """
        ...
