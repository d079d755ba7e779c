"""Plugins that a simulation starts itself: a process each, at a socket in a folder of their own.

A command gets the address to serve at as BERTH_PLUGIN_ADDRESS, which its arguments may name as
$(BERTH_PLUGIN_ADDRESS), as in a container. Where their states are read, it gets a port for its pages as
BERTH_METRICS_ADDRESS, too.
"""

import asyncio
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from berth.sandbox.child_process import ChildProcess
from berth.sandbox.containers.environment import expanded
from berth.sandbox.free_port import LOOPBACK, free_port
from berth.simulation.errors import PluginsError
from berth.simulation.plugins.plugin_settings import SimulatedSidecars

if TYPE_CHECKING:
    from berth.config.out_of_tree.sidecars import SidecarSpec

ADDRESS: Final = "BERTH_PLUGIN_ADDRESS"
PAGES: Final = "BERTH_METRICS_ADDRESS"
GRACE_SECONDS: Final = 5.0
START_SECONDS: Final = 60.0
"""How long a plugin may take to serve, and then to be ready."""
LOOK_SECONDS: Final = 0.01


class StartedPlugins:
    """The processes of one simulation."""

    def __init__(self, plugins: SimulatedSidecars, *, with_pages: bool = False) -> None:
        self._plugins = plugins
        self._with_pages = with_pages
        self.ports: dict[str, int] = {}
        """Where the pages of each are, by its name, if they are served."""
        self._processes: dict[str, ChildProcess] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def start(self) -> "list[SidecarSpec]":
        """Start every plugin that has a command; all plugins with their addresses. Raises: PluginsError."""
        return [
            await self._start(spec, number) if spec.command else spec
            for number, spec in enumerate(self._plugins.sidecars)
        ]

    async def _start(self, spec: "SidecarSpec", number: int) -> "SidecarSpec":
        # The folder is private: the host trusts no socket in a shared one.
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="berth-")
        folder = Path(self._folder.name)
        variables = {ADDRESS: f"unix:{folder / f'{number}.sock'}"}
        if self._with_pages:
            self.ports[spec.name] = free_port()
            variables[PAGES] = f"{LOOPBACK}:{self.ports[spec.name]}"
        command = [expanded(part, variables) for part in spec.command]
        try:
            process = await ChildProcess.start(spec.name, command, folder / f"{number}.log", variables)
        except OSError as error:
            said = f"{command[0]}: {error.strerror or error}; give a program that can be started"
            raise PluginsError(f"{self._plugins.place(spec, 'command')}: {said}") from None
        self._processes[spec.name] = process
        await self._serving(process, folder / f"{number}.sock")
        return replace(spec, address=variables[ADDRESS])

    async def _serving(self, process: ChildProcess, socket: Path) -> None:
        """Wait until it serves, up to a limit: connecting then fails if it does not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while process.exit_code is None and not await asyncio.to_thread(socket.exists):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(LOOK_SECONDS)

    async def ended(self, name: str) -> None:
        """Return once that plugin's process has ended; never for a process that was not started here."""
        process = self._processes.get(name)
        await (asyncio.Event().wait() if process is None else process.wait())

    def last_output(self, name: str) -> str:
        """The last output of that process, and its exit status."""
        process = self._processes[name]
        ended = "" if process.exit_code is None else f"ended with code {process.exit_code}: "
        return f"{ended}{process.last_words()}"

    async def stop(self) -> None:
        """End all of them."""
        await asyncio.gather(*(process.stop(GRACE_SECONDS) for process in self._processes.values()))
        if self._folder is not None:
            self._folder.cleanup()
