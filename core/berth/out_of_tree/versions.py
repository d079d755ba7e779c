"""One plugin's versions: the one that new attempts begin with, and old ones that finish theirs.

    attached --> current --(a newer one is ready)--> draining --(its attempts ended, or time is up)--> gone

Source: docs/protocol.md "Attach, replace, detach".
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from berth.out_of_tree.connection import Connection
from berth.out_of_tree.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.state_feed import StateFeed

log = logging.getLogger(__name__)

DRAIN_SECONDS = 30.0
LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Version:
    """A connection with the feed that keeps it in step, and the task that keeps it up, once it has one."""

    connection: Connection
    feed: StateFeed
    task: "asyncio.Task[Any] | None" = None

    async def close(self) -> None:
        """Hang up for good."""
        self.feed.end()
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


async def drained(version: Version, plugins: Iterable[SidecarPlugin]) -> None:
    """Wait until no attempt needs that version any more, but not for ever."""
    using, name = list(plugins), version.connection.spec.name
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while any(plugin.serves(version.connection) for plugin in using):  # noqa: ASYNC110 - has no event
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        left = sum(plugin.serves(version.connection) for plugin in using)
        log.warning("plugin cut off with attempts at work plugin=%s attempts=%d", name, left)
