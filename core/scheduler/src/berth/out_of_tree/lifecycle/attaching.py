"""Attach, replace, reconfigure and detach plugins while pods are being scheduled.

    attach    a new connection becomes ready first, then its plugin is enabled in the profiles
    replace   the new version becomes ready first; new attempts use it, attempts under way keep the old one
    detach    no further attempt uses it; it is disconnected once the attempts under way have ended
    shadow    as detach, but it then observes attempts without effect on them; and back

A plugin that is not ready in time changes nothing. Source: docs/protocol.md "Attach, replace, detach".
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import grpc.aio

from berth.config.catalogue import IN_TREE
from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.handle import Handle
from berth.framework.runtime import Framework
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.enabled_plugins import EnabledPlugins
from berth.out_of_tree.errors import CallFailedError, RefusedError, SidecarError
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.lifecycle.report import description, leaves, summary
from berth.out_of_tree.lifecycle.wanted import AttachError, DesiredPlugin
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.versions import PluginVersion, drained
from berth.recordings.calls.recording import STOPPED, CallRecording, Extent

log = logging.getLogger(__name__)

READY_SECONDS = 10.0


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
        self._enabled = {name: EnabledPlugins(framework) for name, framework in frameworks.items()}
        self._handles = handles
        self._spawn = spawn
        self._turn = asyncio.Lock()

    def list(self) -> list[dict[str, Any]]:
        """A line for each plugin, and one for each of its versions that is draining."""
        return [line for name in sorted(self._host.versions) for line in self._lines(name)]

    def describe(self, name: str) -> dict[str, Any]:
        """All details of a plugin. Raises: KeyError where there is none of that name."""
        version = self._host.versions[name]
        found = description(version, self._draining(name), self._plugins(name).values())
        return {**found, "comparison": self._host.shadows.report(name)}

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        yield summary(self._host.versions[name], leaves=leaves(self._plugins(name).values()))
        yield from map(summary, self._draining(name))

    def _draining(self, name: str) -> Iterator[PluginVersion]:
        return (each for each in self._host.others if each.draining and each.connection.spec.name == name)

    def has(self, name: str) -> bool:
        """Whether there is a plugin of that name, ready or not."""
        return name in self._host.versions

    def ready(self, name: str) -> bool:
        """Whether that plugin is connected and synchronized. Raises: KeyError."""
        return self._host.versions[name].connection.ready

    def entry_arguments(self, name: str) -> Any:
        """The arguments in force of that plugin's entry. Raises: KeyError."""
        return self._host.versions[name].connection.spec.args

    def record(self, name: str, extent: Extent) -> CallRecording:
        """Start a recording of the plugin's current version.

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

    def end_recording(self, recording: CallRecording) -> None:
        """End that recording."""
        for version in (*self._host.versions.values(), *self._host.others):
            if version.connection.recording is recording:
                version.stop_recording(STOPPED)

    def end_recordings(self) -> None:
        """End all recordings, because the scheduler ends."""
        for version in (*self._host.versions.values(), *self._host.others):
            version.stop_recording(STOPPED)

    def conditions(self) -> dict[tuple[str, str], float]:
        """Which condition holds, by plugin and type."""
        return {
            (name, condition.kind.value): float(condition.holds)
            for name, version in self._host.versions.copy().items()
            for condition in version.connection.conditions
        }

    def enable_listed(self, specs: Iterable[SidecarSpec]) -> None:
        """Enable plugins in the profiles that their entries name, before anything runs.

        Plugins in shadow are set aside from then on, also where profiles name them.
        """
        for spec in specs:
            if spec.name not in self._host.versions:
                continue
            if spec.shadow:
                self._set_aside(self._plugins(spec.name))
            self._add_profiles(self._host.versions[spec.name], DesiredPlugin.of(spec))

    async def attach(self, wanted: DesiredPlugin, *, insists: bool = False) -> Sequence[str]:
        """Bring the plugin to the desired state: attach it, replace its version, or only reconfigure it.

        The result says what of it has no effect, and why. Where a plugin that is there refuses arguments and
        the caller `insists`, they stay wanted: the plugin's conditions say so, and it is offered them again
        when it comes back.

        Raises: AttachError; then nothing has changed.
        """
        self._check(wanted)
        async with self._turn:
            known = self._host.versions.get(wanted.spec.name)
            if wanted.spec.shadow:
                self._check_order(self._plugins(wanted.spec.name), "can't stand in shadow")
            if known is None:
                await self._join(wanted)
            elif known.connection.spec.address != wanted.spec.address:
                await self._replace(known, wanted)
            else:
                await self._reconfigure(known, wanted, insists=insists)
        return self._without_effect(wanted)

    def _without_effect(self, wanted: DesiredPlugin) -> Sequence[str]:
        """A text for each profile whose pluginConfig takes precedence over the entry's arguments."""
        name, args = wanted.spec.name, wanted.spec.args
        if args is None:
            return []
        return [
            f"profile {profile} has arguments of its own for {name} in its pluginConfig, which stand before "
            "these: change or remove them there"
            for profile, own in self._host.own_arguments(name).items()
            if own != args
        ]

    def _check(self, wanted: DesiredPlugin) -> None:
        name = wanted.spec.name
        if name in IN_TREE:
            raise AttachError(f"{name} is an in-tree plugin: choose another name")
        unknown = [profile for profile in wanted.profiles if profile not in self._frameworks]
        if unknown:
            there = ", ".join(sorted(self._frameworks))
            raise AttachError(f"no profile {', '.join(unknown)}; there are: {there}")
        if name not in self._host.versions and not wanted.profiles:
            raise AttachError(f"{name} is new here: name the profiles that are to have it")

    async def _join(self, wanted: DesiredPlugin) -> None:
        arguments = self._arguments(wanted.profiles, wanted.spec)
        version = await self._ready(wanted.spec, arguments)
        self._host.others.remove(version)
        self._host.versions[wanted.spec.name] = version
        for profile in wanted.profiles:
            self._enable(version, profile, wanted)
        self._host.check_gates(version.connection)
        log.info("plugin attached plugin=%s profiles=%s", wanted.spec.name, ",".join(wanted.profiles))

    async def _replace(self, old: PluginVersion, wanted: DesiredPlugin) -> None:
        name = wanted.spec.name
        arguments = self._arguments((*old.connection.arguments, *wanted.profiles), wanted.spec)
        version = await self._ready(wanted.spec, arguments)
        plugins = self._plugins(name)
        if wanted.spec.shadow and not old.connection.spec.shadow:
            await self._withdraw(old, plugins, "is in shadow now")
        self._host.others.remove(version)
        self._host.others.append(old)
        old.draining = True
        self._host.versions[name] = version
        for profile, plugin in plugins.items():
            plugin.use(self._host.caller(version, profile))
            self._host.rewire(profile)
        self._set_shadow(plugins, was=old.connection.spec, is_now=wanted.spec)
        self._add_profiles(version, wanted)
        self._host.check_gates(version.connection)
        self._host.ask_keys_anew(version.connection)
        self._host.requeue_rejected(name, None)
        log.info("plugin replaced plugin=%s address=%s", name, wanted.spec.address)
        self._spawn(self._retire(old), f"old version of plugin {name}")

    async def _reconfigure(self, version: PluginVersion, wanted: DesiredPlugin, *, insists: bool) -> None:
        connection = version.connection
        arguments = self._arguments((*connection.arguments, *wanted.profiles), wanted.spec)
        try:
            await self._apply(version, wanted.spec, arguments)
        except AttachError as error:
            if insists and isinstance(error.__cause__, RefusedError):
                connection.arguments.refused(arguments, error.__cause__.errors)
                connection.show_arguments()
            raise
        connection.arguments.settle()
        connection.show_arguments()
        self._add_profiles(version, wanted)
        self._host.requeue_rejected(wanted.spec.name, None)

    async def shadow(self, name: str, *, on: bool) -> None:
        """Put a plugin into shadow mode in its profiles, or enable it again.

        Raises: KeyError where there is no such plugin; AttachError where it refuses, and stays what it was.
        """
        async with self._turn:
            version = self._host.versions[name]
            connection = version.connection
            if on:
                self._check_order(self._plugins(name), "can't stand in shadow")
            await self._apply(version, replace(connection.spec, shadow=on), dict(connection.arguments))

    async def _apply(self, version: PluginVersion, spec: SidecarSpec, arguments: Mapping[str, Any]) -> None:
        """Apply that entry, with these arguments by profile. Raises: AttachError."""
        connection, plugins = version.connection, self._plugins(spec.name)
        old, before = connection.spec, dict(connection.arguments)
        turns = spec.shadow is not old.shadow
        if turns and spec.shadow:
            await self._withdraw(version, plugins, "is in shadow now")
        connection.spec = spec
        connection.forget_deadlines()
        try:
            await self._tell(connection, arguments, everything=turns)
        except SidecarError as error:
            connection.spec = old
            connection.forget_deadlines()
            await self._restore(connection, before, error, everything=turns)
            if turns and spec.shadow:
                self._take_back(plugins)
            raise AttachError(str(error)) from error
        self._set_shadow(plugins, was=old, is_now=spec)
        if turns:
            self._host.check_gates(connection)

    async def _tell(
        self, connection: PluginConnection, arguments: Mapping[str, Any], *, everything: bool
    ) -> None:
        """Configure the profiles whose arguments changed. Raises: SidecarError with its errors."""
        known = connection.arguments
        for profile, wanted in arguments.items():
            if not everything and profile in known and known[profile] == wanted:
                continue
            try:
                async with asyncio.timeout(READY_SECONDS):
                    await connection.reconfigure(profile, wanted)
            except (TimeoutError, grpc.aio.AioRpcError) as error:
                text = f"the configuration of profile {profile} was not answered"
                raise CallFailedError(connection.spec.name, text) from error

    async def _restore(
        self,
        connection: PluginConnection,
        before: Mapping[str, Any],
        error: SidecarError,
        *,
        everything: bool,
    ) -> None:
        """Restore the arguments from before that error; reconnects a plugin that did not answer."""
        if not isinstance(error, RefusedError):
            connection.disconnect(str(error))
        with suppress(SidecarError):
            await self._tell(connection, before, everything=everything)
        for profile in connection.arguments.keys() - before.keys():
            await _released(connection, profile)

    def _check_order(self, plugins: Mapping[str, SidecarPlugin], cannot: str) -> None:
        """Raises: AttachError where the plugin is a profile's QueueSort plugin."""
        for profile, plugin in plugins.items():
            if self._enabled[profile].is_queue_sort(plugin):
                raise AttachError(
                    f"{plugin.name} orders the queue and {cannot}: profiles name it at queueSort"
                )

    def _set_shadow(
        self, plugins: Mapping[str, SidecarPlugin], *, was: SidecarSpec, is_now: SidecarSpec
    ) -> None:
        """Put plugins, by profile, into shadow mode or end it, where that changed."""
        if is_now.shadow and not was.shadow:
            # Pods that it gated or rejected are requeued while its events are still registered.
            self._host.requeue_rejected(is_now.name, None)
            self._set_aside(plugins)
        elif was.shadow and not is_now.shadow:
            self._take_back(plugins)
        if is_now.shadow is not was.shadow:
            log.info("plugin in shadow plugin=%s shadow=%s", is_now.name, is_now.shadow)

    def _set_aside(self, plugins: Mapping[str, SidecarPlugin]) -> None:
        for profile, plugin in plugins.items():
            self._enabled[profile].set_aside(plugin)
            plugin.leaving = False
            self._host.shadows.enter(plugin, self._frameworks[profile], self._enabled[profile])
            self._host.rewire(profile)

    def _take_back(self, plugins: Mapping[str, SidecarPlugin]) -> None:
        for profile, plugin in plugins.items():
            self._host.shadows.leave(plugin, self._frameworks[profile])
            self._enabled[profile].take_back(plugin)
            self._host.rewire(profile)

    def _arguments(self, profiles: Iterable[str], spec: SidecarSpec) -> dict[str, Any]:
        """The arguments of each profile: its pluginConfig where it has one, else the entry's arguments."""
        own = self._host.own_arguments(spec.name)
        return {profile: own.get(profile, spec.args) for profile in profiles}

    def _add_profiles(self, version: PluginVersion, wanted: DesiredPlugin) -> None:
        for profile in wanted.profiles:
            if (wanted.spec.name, profile) not in self._host.plugins:
                self._enable(version, profile, wanted)

    def _enable(self, version: PluginVersion, profile: str, wanted: DesiredPlugin) -> None:
        plugin = self._host.make(version, self._handles[profile])
        self._enabled[profile].enable(plugin, wanted.spec, wanted.weight)
        self._host.rewire(profile)
        if wanted.spec.shadow:
            self._set_aside({profile: plugin})

    async def _ready(self, spec: SidecarSpec, arguments: Mapping[str, Any]) -> PluginVersion:
        """A new version, once it is ready. Raises: AttachError where it is refused, or not ready in time."""
        version = self._host.new_version(spec, arguments)
        self._host.others.append(version)
        version.task = self._spawn(version.connection.run(), f"plugin {spec.name}")
        try:
            async with asyncio.timeout(READY_SECONDS):
                await version.connection.settled.wait()
        except TimeoutError:
            why = version.connection.last_error or "no plugin answers"
            raise AttachError(f"not ready within {READY_SECONDS:g} s: {why}") from None
        else:
            if refusal := version.connection.refusal:
                raise AttachError(refusal)
        finally:
            if not version.connection.came_up.is_set():
                self._host.others.remove(version)
                await version.close()
        return version

    async def detach(self, name: str, profiles: Sequence[str] = ()) -> None:
        """Disable a plugin in these profiles, or in all; returns once attempts that use it have ended.

        Raises: KeyError where there is no such plugin; AttachError where a profile does not have it.
        """
        async with self._turn:
            version = self._host.versions[name]
            having = self._plugins(name)
            leaving = list(profiles) or list(having)
            if missing := [profile for profile in leaving if profile not in having]:
                raise AttachError(f"profile {', '.join(missing)} does not have {name}")
            plugins = {profile: having[profile] for profile in leaving}
            self._check_order(plugins, "can't be taken out")
            await self._withdraw(version, plugins, "was detached")
            for profile, plugin in plugins.items():
                self._disable(profile, plugin)
                await _released(version.connection, profile)
            if len(leaving) == len(having):
                del self._host.versions[name]
                await version.close()
            log.info("plugin detached plugin=%s profiles=%s", name, ",".join(leaving))

    async def _withdraw(self, version: PluginVersion, plugins: Mapping[str, SidecarPlugin], why: str) -> None:
        """Start no further attempt with the plugin, and wait until those under way have ended."""
        for profile, plugin in plugins.items():
            self._enabled[profile].start_draining(plugin)
            self._host.rewire(profile)
        self._host.reject_waiting(version.connection.spec.name, why)
        await drained(version, plugins.values())

    def _plugins(self, name: str) -> dict[str, SidecarPlugin]:
        """The plugin of that name in each profile that has it."""
        return {profile: plugin for (known, profile), plugin in self._host.plugins.items() if known == name}

    def _disable(self, profile: str, plugin: SidecarPlugin) -> None:
        self._host.shadows.leave(plugin, self._frameworks[profile])
        self._enabled[profile].disable(plugin)
        # Pods that it gated or rejected have to be requeued while its events are still registered.
        self._host.requeue_rejected(plugin.name, None)
        self._host.forget(plugin, profile)
        self._host.rewire(profile)

    async def _retire(self, old: PluginVersion) -> None:
        name = old.connection.spec.name
        await drained(old, self._plugins(name).values())
        self._host.others.remove(old)
        await old.close()
        log.info("old version gone plugin=%s address=%s", name, old.connection.spec.address)


async def _released(connection: PluginConnection, profile: str) -> None:
    try:
        await connection.release(profile)
    except Exception as error:  # noqa: BLE001 - it is not needed any more, whatever it says to that
        name = connection.spec.name
        log.info("plugin not notified that a profile left plugin=%s err=%s", name, error)
