"""Images on nodes: which node has which, how large it is, how many nodes share it.

The size of an image is the first one reported while at least one node has it.

Source: pkg/scheduler/backend/cache/cache.go addNodeImageStates (Kubernetes v1.36).
"""

from itertools import islice

from berth.objects.image_names import normalized_image_name
from berth.objects.node import Node
from berth.snapshot.columns.flag_columns import FlagColumns
from berth.snapshot.columns.growing import Mask

MAX_NAMES = 8_192
"""So many names of a node's images count: a kubelet reports 250 where it is not told otherwise."""


class ImageColumns:
    """Images by normalised name."""

    def __init__(self, capacity: int) -> None:
        self._on = FlagColumns[str](capacity)
        self._sizes: dict[str, int] = {}

    def set_row(self, row: int, node: Node) -> None:
        """Take over the images that one node reports."""
        named = ((name, image.size_bytes) for image in node.status.images for name in image.names or ())
        sizes: dict[str, int] = {}
        for name, size in islice(named, MAX_NAMES):
            sizes.setdefault(normalized_image_name(name), size)
        self.drop_row(row)
        for name, size in sizes.items():
            self._sizes.setdefault(name, size)
        self._on.set_row(row, tuple(sizes))

    def on_nodes(self, name: str, n: int) -> Mask | None:
        """Which of the first n nodes have the image; None where none has."""
        return self._on.column(name, n)

    def size_bytes(self, name: str) -> int:
        """The size of an image that some node has."""
        return self._sizes[name]

    def holders(self, name: str) -> int:
        """How many nodes have it."""
        return self._on.holders(name)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._on.grow(capacity)

    def drop_row(self, row: int) -> None:
        """Forget a removed node's images."""
        gone = self._on.on(row)
        self._on.drop_row(row)
        for name in gone:
            if not self._on.holders(name):
                del self._sizes[name]
        if len(gone) > len(self._sizes):
            self._sizes = dict(self._sizes)

    def move_row(self, source: int, target: int) -> None:
        """Carry a row over to another that was dropped."""
        self._on.move_row(source, target)
