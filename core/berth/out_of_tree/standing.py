"""Whether what a plugin answered earlier still holds: the plugin's own word, and what may have changed it.

Source: proto/berth/plugin/v1/identity.proto Capabilities.node_local and pod_fields; docs/protocol.md.
"""

from collections.abc import Hashable
from typing import NamedTuple

from berth.objects.pod import Pod
from berth.out_of_tree._generated import identity_pb2
from berth.out_of_tree.connection import Connection
from berth.out_of_tree.pod_fields import PodFields
from berth.out_of_tree.raw_objects import RawObjects
from berth.out_of_tree.state_feed import StateFeed


class Basis(NamedTuple):
    """Which start of the plugin gave answers, in which state of its own, to be normalised how."""

    start: int
    disturbances: int
    normalization: int


class Standing:
    """One plugin's, as told by its connection and by what the feed showed it."""

    def __init__(self, connection: Connection, feed: StateFeed, pods: RawObjects[Pod]) -> None:
        self._connection = connection
        self._feed = feed
        self._pods = pods
        self._fields = PodFields(())
        self._fields_of: identity_pb2.Capabilities | None = None

    def sign(self, pod: Pod) -> Hashable | None:
        """The pod's fields that matter to the plugin; None where it did not say which, or is not there."""
        connection = self._connection
        wanted = connection.capabilities
        if not (connection.ready and wanted.HasField("pod_fields")):
            return None
        if wanted is not self._fields_of:
            self._fields, self._fields_of = PodFields(wanted.pod_fields.paths), wanted
        known = self._pods.get(pod.uid)
        return self._fields.of(known) if known else None

    def basis(self, normalization: int) -> Basis | None:
        """The basis of answers given now; None where an answer for a node hangs on more than that node."""
        connection = self._connection
        wanted = connection.capabilities
        if not connection.ready or not wanted.node_local or wanted.score_needs_feasible:
            return None
        return Basis(connection.starts, self._feed.disturbances, normalization)
