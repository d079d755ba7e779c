"""Whether a sidecar's earlier answers still hold: by what it announced, and by what changed since.

Source: proto/berth/plugin/v1/identity.proto Capabilities.node_local and pod_fields; docs/protocol.md.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.cluster_state.pod_fields import PodFields
from berth_plugin_proto import identity_pb2


class SidecarKey(NamedTuple):
    """A sidecar's cache key: the connection, its epoch, the plugin's requeues, and the normalization."""

    version: str
    start: int
    disturbances: int
    normalization: int | None


class ResponseValidity:
    """The validity of one plugin's answers; `caller` gives its connection."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller
        self._fields = PodFields(())
        self._fields_of: identity_pb2.Capabilities | None = None

    def sign(self, pod: Pod) -> Hashable | None:
        """The pod's fields that matter to the plugin; None where it did not say which, or is not there."""
        caller = self._caller()
        connection = caller.connection
        wanted = connection.capabilities
        if not (connection.ready and wanted.HasField("pod_fields")):
            return None
        if wanted is not self._fields_of:
            self._fields, self._fields_of = PodFields(wanted.pod_fields.paths), wanted
        known = caller.around.pods.get(pod.uid)
        return self._fields.of(known) if known else None

    def signs(self, pod: bytes) -> Hashable:
        """The same of a pod's JSON, once a pod was signed."""
        return self._fields.of(pod)

    def cache_key(self, normalization: int | None) -> SidecarKey | None:
        """The cache key of answers given now; None where the plugin is not node-local."""
        caller = self._caller()
        connection = caller.connection
        wanted = connection.capabilities
        if not connection.ready or not wanted.node_local or wanted.score_needs_feasible:
            return None
        return SidecarKey(connection.epoch, connection.starts, caller.feed.disturbances, normalization)
