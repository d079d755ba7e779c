"""Attach, replace, reconfigure and detach plugins while pods are being scheduled.

    attach    a new connection gets ready first, then its plugin joins the profiles
    replace   the new version gets ready beside the old; new attempts begin with it, old ones end with the old
    detach    no attempt begins with it any more; those that did still end with it, then it is hung up on

A plugin that does not get ready in time changes nothing. Source: docs/protocol.md "Attach, replace, detach".
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.config.catalogue import IN_TREE
from berth.config.sidecars import SidecarSpec
from berth.framework.handle import Handle
from berth.framework.runtime import Framework
from berth.out_of_tree.enabling import begin_to_leave, disable, enable
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.recording import STOPPED, Extent, Recording
from berth.out_of_tree.report import description, summary
from berth.out_of_tree.versions import Version, drained

log = logging.getLogger(__name__)

READY_SECONDS = 10.0


class AttachError(ValueError):
    """A plugin can't be attached, replaced or detached as asked; the text says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A plugin as it is to be: its entry, and the profiles that are to have it beside those that do."""

    spec: SidecarSpec
    profiles: tuple[str, ...] = ()
    weight: int = 1

    @classmethod
    def of(cls, spec: SidecarSpec) -> "Wanted":
        """What the entry of a list says."""
        return cls(spec, spec.profiles, spec.weight)


class Attaching:
    """Changes a host's plugins; one change at a time.

    `spawn` runs a coroutine for as long as the scheduler runs.
    """

    def __init__(
        self,
        host: PluginHost,
        frameworks: Mapping[str, Framework],
        handles: Mapping[str, Handle],
        spawn: Callable[[Any, str], "asyncio.Task[Any]"],
    ) -> None:
        self._host = host
        self._frameworks = frameworks
        self._handles = handles
        self._spawn = spawn
        self._turn = asyncio.Lock()

    def list(self) -> list[dict[str, Any]]:
        """Every plugin in a line."""
        return [summary(self._host.versions[name]) for name in sorted(self._host.versions)]

    def describe(self, name: str) -> dict[str, Any]:
        """Everything about a plugin. Raises: KeyError where there is none of that name."""
        version = self._host.versions[name]
        old = [each for each in self._host.others if each.connection.spec.name == name]
        plugins = [plugin for (known, _), plugin in self._host.plugins.items() if known == name]
        return description(version, old, plugins)

    def record(self, name: str, extent: Extent) -> Recording:
        """A recording of a plugin, by the version that new attempts begin with.

        Raises: KeyError where there is no such plugin; AttachError where it can't be recorded now.
        """
        version = self._host.versions[name]
        if not version.connection.starts:
            why = version.connection.last_error or "waiting for it"
            raise AttachError(f"{name} has never been ready: {why}")
        if version.connection.recording is not None:
            raise AttachError(f"{name} is being recorded already: one recording at a time")
        log.info("plugin recorded plugin=%s", name)
        return version.record(extent)

    def end_recording(self, recording: Recording) -> None:
        """Show nothing more to that recording."""
        for version in (*self._host.versions.values(), *self._host.others):
            if version.connection.recording is recording:
                version.stop_recording(STOPPED)

    def end_recordings(self) -> None:
        """The scheduler ends."""
        for version in (*self._host.versions.values(), *self._host.others):
            version.stop_recording(STOPPED)

    def conditions(self) -> dict[tuple[str, str], float]:
        """Which condition holds, by plugin and type."""
        return {
            (name, condition.kind.value): float(condition.holds)
            for name, version in self._host.versions.items()
            for condition in version.connection.conditions
        }

    def enable_listed(self, specs: Iterable[SidecarSpec]) -> None:
        """Put plugins into the profiles that their entries name, before anything runs."""
        for spec in specs:
            if spec.name in self._host.versions:
                self._add_profiles(self._host.versions[spec.name], Wanted.of(spec))

    async def attach(self, wanted: Wanted) -> None:
        """Make the plugin be as wanted, whether it is new, another version, or only configured anew.

        Raises: AttachError; then everything is as it was.
        """
        self._check(wanted)
        async with self._turn:
            known = self._host.versions.get(wanted.spec.name)
            if known is None:
                await self._join(wanted)
            elif known.connection.spec.address != wanted.spec.address:
                await self._replace(known, wanted)
            else:
                await self._reconfigure(known, wanted)

    def _check(self, wanted: Wanted) -> None:
        name = wanted.spec.name
        if name in IN_TREE:
            raise AttachError(f"{name} is an in-tree plugin: choose another name")
        unknown = [profile for profile in wanted.profiles if profile not in self._frameworks]
        if unknown:
            there = ", ".join(sorted(self._frameworks))
            raise AttachError(f"no profile {', '.join(unknown)}; there are: {there}")
        if name not in self._host.versions and not wanted.profiles:
            raise AttachError(f"{name} is new here: name the profiles that are to have it")

    async def _join(self, wanted: Wanted) -> None:
        arguments = dict.fromkeys(wanted.profiles, wanted.spec.args)
        version = await self._ready(wanted.spec, arguments)
        self._host.others.remove(version)
        self._host.versions[wanted.spec.name] = version
        for profile in wanted.profiles:
            self._enable(version, profile, wanted)
        self._host.check_gates(version.connection)
        log.info("plugin attached plugin=%s profiles=%s", wanted.spec.name, ",".join(wanted.profiles))

    async def _replace(self, old: Version, wanted: Wanted) -> None:
        name = wanted.spec.name
        arguments = self._arguments(old, wanted)
        version = await self._ready(wanted.spec, arguments)
        self._host.others.remove(version)
        self._host.others.append(old)
        self._host.versions[name] = version
        for (known, profile), plugin in list(self._host.plugins.items()):
            if known == name:
                plugin.use(self._host.caller(version, profile))
                self._host.rewire(profile)
        self._add_profiles(version, wanted)
        self._host.check_gates(version.connection)
        self._host.news_from(name, None)
        log.info("plugin replaced plugin=%s address=%s", name, wanted.spec.address)
        self._spawn(self._retire(old), f"old version of plugin {name}")

    async def _reconfigure(self, version: Version, wanted: Wanted) -> None:
        connection = version.connection
        connection.spec = wanted.spec
        connection.forget_deadlines()
        for profile, arguments in self._arguments(version, wanted).items():
            if profile in connection.arguments and connection.arguments[profile] == arguments:
                continue
            try:
                await connection.reconfigure(profile, arguments)
            except SidecarError as error:
                raise AttachError(str(error)) from error
        self._add_profiles(version, wanted)
        self._host.news_from(wanted.spec.name, None)

    def _arguments(self, version: Version, wanted: Wanted) -> dict[str, Any]:
        """What each profile's arguments come to: what the entry says, for all that have the plugin."""
        profiles = (*version.connection.arguments, *wanted.profiles)
        return dict.fromkeys(profiles, wanted.spec.args)

    def _add_profiles(self, version: Version, wanted: Wanted) -> None:
        for profile in wanted.profiles:
            if (wanted.spec.name, profile) not in self._host.plugins:
                self._enable(version, profile, wanted)

    def _enable(self, version: Version, profile: str, wanted: Wanted) -> None:
        plugin = self._host.make(version, self._handles[profile])
        enable(self._frameworks[profile], plugin, wanted.spec, wanted.weight)
        self._host.rewire(profile)

    async def _ready(self, spec: SidecarSpec, arguments: Mapping[str, Any]) -> Version:
        """A version that can be asked. Raises: AttachError where it does not get ready in time."""
        version = self._host.new_version(spec, arguments)
        self._host.others.append(version)
        version.task = self._spawn(version.connection.run(), f"plugin {spec.name}")
        try:
            async with asyncio.timeout(READY_SECONDS):
                await version.connection.came_up.wait()
        except TimeoutError:
            self._host.others.remove(version)
            await version.close()
            why = version.connection.last_error or "nobody answers"
            raise AttachError(f"not ready within {READY_SECONDS:g} s: {why}") from None
        return version

    async def detach(self, name: str, profiles: Sequence[str] = ()) -> None:
        """Take a plugin out of these profiles, or all; return once its attempts there have ended.

        Raises: KeyError where there is no such plugin; AttachError where a profile does not have it.
        """
        async with self._turn:
            version = self._host.versions[name]
            having = [profile for known, profile in self._host.plugins if known == name]
            leaving = list(profiles) or having
            if missing := [profile for profile in leaving if profile not in having]:
                raise AttachError(f"profile {', '.join(missing)} does not have {name}")
            plugins = {profile: self._host.plugins[name, profile] for profile in leaving}
            for profile, plugin in plugins.items():
                begin_to_leave(self._frameworks[profile], plugin)
            self._host.let_go(name)
            await drained(version, plugins.values())
            for profile, plugin in plugins.items():
                self._disable(profile, plugin)
                await _released(version, profile)
            if len(leaving) == len(having):
                del self._host.versions[name]
                await version.close()
            log.info("plugin detached plugin=%s profiles=%s", name, ",".join(leaving))

    def _disable(self, profile: str, plugin: Any) -> None:
        disable(self._frameworks[profile], plugin)
        # What it held back or turned down has to be told before nobody waits for its events any more.
        self._host.news_from(plugin.name, None)
        self._host.forget(plugin, profile)
        self._host.rewire(profile)

    async def _retire(self, old: Version) -> None:
        name = old.connection.spec.name
        plugins = [plugin for (known, _), plugin in self._host.plugins.items() if known == name]
        await drained(old, plugins)
        self._host.others.remove(old)
        await old.close()
        log.info("old version gone plugin=%s address=%s", name, old.connection.spec.address)


async def _released(version: Version, profile: str) -> None:
    try:
        await version.connection.release(profile)
    except Exception as error:  # noqa: BLE001 - it is not needed any more, whatever it says to that
        name = version.connection.spec.name
        log.info("plugin not told that a profile left plugin=%s error=%s", name, error)
