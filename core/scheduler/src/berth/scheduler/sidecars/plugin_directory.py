"""A directory in which plugins come and go as sockets, followed while the scheduler runs.

    NAME.sock appears -------------------> attached as NAME, as its entry of the list says, or as the
                                           directory's defaults do where no entry names it
    it goes away, an entry names it -----> nothing: the plugin is lost, and its failure policy says the rest
    it goes away, no entry names it -----> detached, once it is away for half a minute

So a plugin that users count on never turns into no plugin by its own crash: only who changes the list
detaches it. Looked at once a second, as the list is.

Source: docs/protocol.md "Attach, replace, detach"; docs/decisions/.
"""

import asyncio
import logging
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from berth.client.errors import ClientError
from berth.client.timing import Sleep
from berth.config.out_of_tree.sidecars import SidecarSpec, SocketDirectory, plugin_name_problem
from berth.out_of_tree.errors import NotConnectedError
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.wanted import AttachError, DesiredPlugin
from berth.out_of_tree.transport.socket_access import check_socket

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
SUFFIX = ".sock"
GONE_LOOKS = 30
"""For how many looks a plugin that no configuration names may be away: a restart takes less."""
RETRY_LOOKS = 30
"""After how many looks a plugin that could not be attached is tried again."""

Identity = tuple[int, int]


class PluginDirectory:
    """Follows one directory, or none; `listed` are the entries of the list as it is now."""

    def __init__(
        self,
        directory: SocketDirectory | None,
        listed: Mapping[str, SidecarSpec],
        attaching: Attaching,
        keep_objects: Callable[[], Awaitable[None]],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._directory = directory
        self._listed = listed
        self._attaching = attaching
        self._keep_objects = keep_objects
        self._sleep = sleep
        self._seen: dict[str, Identity] = {}
        self._joined: set[str] = set()
        self._away: dict[str, int] = {}
        self._resting: dict[str, tuple[Identity, int]] = {}
        self._said: dict[str, str] = {}

    def use(self, directory: SocketDirectory | None) -> None:
        """Follow that one from the next look on."""
        self._directory = directory

    async def follow(self) -> None:
        """Look for changes until cancelled."""
        while True:
            await self.look()
            await self._sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take over what changed since the last look."""
        directory = self._directory
        if directory is None:
            return
        try:
            found = _sockets(Path(directory.path))
        except OSError as error:
            # One that can't be read is not an empty one.
            self._complain("", f"can't be read: {error.strerror or error}")
            return
        self._said.pop("", None)
        for name, identity in sorted(found.items()):
            await self._there(directory, name, identity)
        for name in self._joined - found.keys():
            await self._gone(name)

    async def _there(self, directory: SocketDirectory, name: str, identity: Identity) -> None:
        self._away.pop(name, None)
        if self._attaching.has(name):
            self._seen[name] = identity
            return
        if self._seen.get(name) == identity:
            return  # it was detached, and it is still the same
        rested, looks = self._resting.get(name, (identity, 0))
        if rested == identity and looks:
            self._resting[name] = identity, looks - 1
            return
        spec = self._listed.get(name) or directory.spec_of(name)
        if problem := _problem(spec, directory):
            self._complain(name, problem)
            return
        self._said.pop(name, None)
        await self._attach(spec, identity)

    async def _attach(self, spec: SidecarSpec, identity: Identity) -> None:
        try:
            await self._keep_objects()
            await self._attaching.attach(DesiredPlugin.of(spec))
        except (AttachError, ClientError) as error:
            self._resting[spec.name] = identity, RETRY_LOOKS
            log.error("plugin not attached plugin=%s err=%s", spec.name, error)  # noqa: TRY400 (reported, not traced)
        else:
            self._resting.pop(spec.name, None)
            self._joined.add(spec.name)
            self._seen[spec.name] = identity
            log.info("plugin joined by its socket plugin=%s address=%s", spec.name, spec.address)

    async def _gone(self, name: str) -> None:
        """A plugin that joined has no socket any more."""
        if not self._attaching.has(name):
            self._joined.remove(name)
            self._away.pop(name, None)
        elif name in self._listed or self._attaching.ready(name):
            self._away.pop(name, None)
        elif (looks := self._away.get(name, 0) + 1) < GONE_LOOKS:
            self._away[name] = looks
        else:
            log.warning("plugin detached, its socket went away and no entry names it plugin=%s", name)
            self._joined.remove(name)
            del self._away[name]
            try:
                await self._attaching.detach(name)
            except (AttachError, KeyError) as error:
                log.error("plugin not detached plugin=%s err=%s", name, error)  # noqa: TRY400 (as above)

    def _complain(self, name: str, problem: str) -> None:
        """Say it once."""
        if self._said.get(name) != problem and self._directory is not None:
            self._said[name] = problem
            log.warning("directory of plugins path=%s plugin=%s err=%s", self._directory.path, name, problem)


def _sockets(directory: Path) -> dict[str, Identity]:
    """The sockets there, by the names of their plugins.

    Raises: OSError where the directory can't be read.
    """
    found: dict[str, Identity] = {}
    for path in directory.iterdir():
        try:
            seen = path.stat()
        except OSError:
            continue  # it went away meanwhile, or leads nowhere
        if path.suffix == SUFFIX and path.stem[:1] != "." and stat.S_ISSOCK(seen.st_mode):
            found[path.stem] = seen.st_ino, seen.st_ctime_ns
    return found


def _problem(spec: SidecarSpec, directory: SocketDirectory) -> str:
    """Why a plugin is not attached yet; empty where nothing speaks against it."""
    if problem := plugin_name_problem(spec.name):
        return f"{problem}: call the socket after its plugin"
    if not spec.profiles:
        return "no entry of the list gives it profiles, and neither does the directory"
    if spec.address != directory.address_of(spec.name):
        return f"its entry of the list says {spec.address}"
    try:
        check_socket(spec.name, directory.path_of(spec.name), spec.user)
    except NotConnectedError as error:
        return str(error)
    return ""
