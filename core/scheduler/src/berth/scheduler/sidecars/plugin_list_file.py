"""The list of plugins while the scheduler runs: what changes in it is attached, reconfigured or detached.

The file is looked at once a second, through whatever links lead to it: a mounted ConfigMap is swapped by one.
A list that is wrong, and an entry that cannot be had, change nothing and are logged.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from berth.client.errors import ClientError
from berth.client.timing import Sleep
from berth.config.errors import PluginListError
from berth.config.out_of_tree.plugin_list import read_plugin_list
from berth.config.out_of_tree.sidecars import SidecarSpec, SocketDirectory
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.wanted import AttachError, DesiredPlugin

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class PluginListFile:
    """Follows the file of --plugins; `known` are its entries by name, kept as the file has them.

    `keep_objects` is awaited before a plugin joins; `use_directory` is called with the list's directory.
    """

    def __init__(
        self,
        path: str,
        known: dict[str, SidecarSpec],
        attaching: Attaching,
        keep_objects: Callable[[], Awaitable[None]],
        sleep: Sleep = asyncio.sleep,
        *,
        use_directory: Callable[[SocketDirectory | None], None] = lambda _directory: None,
    ) -> None:
        self._path = Path(path)
        self._known = known
        self._use_directory = use_directory
        self._attaching = attaching
        self._keep_objects = keep_objects
        self._sleep = sleep
        self._content: bytes | None = None
        self._unread = ""
        """Why it could not be read when it was looked at last."""

    async def follow(self) -> None:
        """Look for changes until cancelled."""
        while True:
            await self.look()
            await self._sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take over what changed since the last look."""
        try:
            content = self._path.read_bytes()
        except OSError as error:
            self._complain(str(error.strerror or error))
            return
        self._unread = ""
        if content == self._content:
            return
        self._content = content
        try:
            specs, directory = read_plugin_list(content, str(self._path))
        except PluginListError as error:
            log.error("list of plugins not taken over err=%s", "; ".join(error.messages))  # noqa: TRY400 (reported, not traced)
            return
        wanted = {spec.name: spec for spec in specs}
        self._use_directory(directory)
        for name in [name for name in self._known if name not in wanted]:
            await self._leave(name)
        for spec in wanted.values():
            if self._known.get(spec.name) != spec:
                await self._take(spec)

    def _complain(self, why: str) -> None:
        """Say it once, not with every look."""
        if why != self._unread:
            self._unread = why
            log.warning("list of plugins not read file=%s err=%s", self._path, why)

    async def _take(self, spec: SidecarSpec) -> None:
        self._known[spec.name] = spec
        try:
            await self._keep_objects()
            notes = await self._attaching.attach(DesiredPlugin.of(spec), insists=True)
        except (AttachError, ClientError) as error:
            log.error("plugin stays as it was plugin=%s err=%s", spec.name, error)  # noqa: TRY400 (as above)
        else:
            log.info("plugin is as its list says plugin=%s", spec.name)
            for note in notes:
                log.warning("arguments of the list have no effect plugin=%s note=%s", spec.name, note)

    async def _leave(self, name: str) -> None:
        del self._known[name]
        try:
            await self._attaching.detach(name)
        except (AttachError, KeyError) as error:
            log.error("plugin not detached plugin=%s err=%s", name, error)  # noqa: TRY400 (as above)
