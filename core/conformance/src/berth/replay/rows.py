"""Which node stands at which index, step by step, as a plugin that follows the state knows it.

Candidates name nodes by these indices, as a bitmap or as a list.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from berth.out_of_tree.packing import bitmap
from berth.recordings.errors import UnusableRecordingError
from berth.snapshot.columns.growing import Rows
from berth_plugin_proto import scheduling_pb2, state_pb2

INDEX_BYTES = 4


class NodeRows:
    """Names of nodes by index."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def apply(self, changes: Iterable[state_pb2.Change]) -> None:
        """Take over what happened to nodes."""
        for change in changes:
            match change.WhichOneof("change"):
                case "node_upsert" if change.node_upsert.index == len(self.names):
                    self.names.append(change.node_upsert.name)
                case "node_remove":
                    last = self.names.pop()
                    if change.node_remove.index < len(self.names):
                        self.names[change.node_remove.index] = last


def lists(request: Any) -> bool:
    """Whether the request lists its candidates by index."""
    fields = request.DESCRIPTOR.fields_by_name
    return "candidates" in fields and request.candidates.HasField("indices")


def listed_rows(candidates: scheduling_pb2.Candidates) -> Rows:
    """The rows that are listed. Shapes: result intp (k,). Raises: RecordingError."""
    if len(candidates.indices) % INDEX_BYTES:
        raise UnusableRecordingError(f"a recorded call lists nodes in {len(candidates.indices)} bytes")
    return np.frombuffer(candidates.indices, dtype="<u4").astype(np.intp)


def by_bitmap(request: Any, n: int) -> Any:
    """The same question about n nodes, for a plugin that does not read lists.

    An index beyond them is of a node that has moved since, which the plugin sees by the call's generation.
    """
    changed = type(request)()
    changed.CopyFrom(request)
    rows = listed_rows(request.candidates)
    changed.candidates.CopyFrom(scheduling_pb2.Candidates(bitmap=bitmap(rows[rows < n], n)))
    return changed
