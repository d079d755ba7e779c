"""Which node stands at which index, step by step, as a plugin that follows the state knows it."""

from collections.abc import Iterable

from berth_plugin_proto import state_pb2


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
