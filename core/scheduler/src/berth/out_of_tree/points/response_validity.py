"""When a sidecar's cached answers are valid: its signature of a pod, and its cache key.

Source: proto/berth/plugin/v1/identity.proto Capabilities.node_local and pod_fields; docs/protocol.md.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.cluster_state.pod_fields import PodFields
from berth_plugin_proto import identity_pb2


class SidecarKey(NamedTuple):
    """A sidecar's cache key: every input of its answers besides the pod's fields and a node's own row."""

    epoch: str
    """Of the state stream: another one means another connection object, as after a replacement."""
    starts: int
    """How often the connection came up: the plugin may have restarted between two of them."""
    external_changes: int
    """Changes of watched objects, and requeues that the plugin asked for."""
    normalization: int | None


class ResponseValidity:
    """Signature and cache key of one plugin, whose current connection `caller` returns."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller
        self._fields = PodFields(())
        self._fields_of: identity_pb2.Capabilities | None = None

    def sign(self, pod: Pod) -> Hashable | None:
        """The values of the pod fields that the plugin named; None if it named none or is not connected."""
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
        """The signature of a pod given as JSON. `sign` must have been called before."""
        return self._fields.of(pod)

    def cache_key(self, normalization: int | None) -> SidecarKey | None:
        """The cache key of answers given now; None where the plugin is not node-local."""
        caller = self._caller()
        connection = caller.connection
        wanted = connection.capabilities
        if not connection.ready or not wanted.node_local or wanted.score_needs_feasible:
            return None
        return SidecarKey(connection.epoch, connection.starts, caller.feed.external_changes, normalization)
