"""One plugin's versions: the current one, and draining ones that finish their attempts.

    attached --> current --(a newer one is ready)--> draining --(its attempts ended, or time is up)--> gone

Source: docs/protocol.md "Attach, replace, detach".
"""

import asyncio
import logging
from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from berth.out_of_tree.cluster_state.state_feed import StateFeed
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.handshake import PROTOCOL_VERSION, configuration
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.recordings.calls.recording import CallRecording, Extent, Opening
from berth_plugin_proto import identity_pb2, recording_pb2, state_pb2

log = logging.getLogger(__name__)

DRAIN_SECONDS = 30.0
LOOK_SECONDS = 0.05


class PluginVersion(msgspec.Struct):
    """A connection with its state feed, and its task once it was started."""

    connection: PluginConnection
    feed: StateFeed
    task: "asyncio.Task[Any] | None" = None
    draining: bool = False
    """Whether another version took its place, so that it only ends its attempts."""

    def record(self, extent: Extent) -> CallRecording:
        """Start a recording of what is exchanged with the plugin, which begins with the current state."""
        connection = self.connection
        handshake = identity_pb2.HandshakeResponse(
            name=connection.spec.name,
            version=connection.version,
            supported_versions=[PROTOCOL_VERSION],
            capabilities=connection.capabilities,
        )
        begin = state_pb2.SyncRequest(begin=state_pb2.Begin(epoch=connection.epoch))
        configured = (
            configuration(connection.spec, profile, arguments)
            for profile, arguments in connection.arguments.items()
        )
        opening = Opening(handshake, tuple(configured), chain((begin,), self.feed.picture()))
        recording = CallRecording(opening, extent)
        connection.record(recording)
        return recording

    def stop_recording(self, reason: Any) -> None:
        """End the recording."""
        if self.connection.recording is not None:
            self.connection.recording.end(reason)
            self.connection.record(None)

    async def close(self) -> None:
        """Close the connection."""
        self.feed.end()
        self.stop_recording(recording_pb2.RECORDING_END_REASON_PLUGIN_GONE)
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


async def drained(version: PluginVersion, plugins: Iterable[SidecarPlugin]) -> None:
    """Wait until no attempt uses that version any more, up to a limit."""
    using, name = list(plugins), version.connection.spec.name
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while any(plugin.serves(version.connection) for plugin in using):  # noqa: ASYNC110 - has no event
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        left = sum(plugin.serves(version.connection) for plugin in using)
        log.warning("plugin cut off with attempts at work plugin=%s attempts=%s", name, left)
