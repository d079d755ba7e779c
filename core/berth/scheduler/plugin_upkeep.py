"""Which plugins in other processes there are, kept up while the scheduler runs.

Attached, replaced and detached by request (plugin_admin.py), by the list (plugin_list_file.py) and by the
directory where they appear (plugin_directory.py); shown on our own pod (plugin_readiness.py). All of that is
imported with the first of them (plugins_elsewhere.py says why).
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from berth.client.pods import Pods
from berth.scheduler.core_assembly import SchedulerCore
from berth.scheduler.plugins_elsewhere import PluginsElsewhere
from berth.scheduler.process_settings import ProcessSettings
from berth.scheduler.raw_keeping import RawKeeping
from berth.scheduler.running_tasks import RunningTasks
from berth.scheduler.transports import Transports

if TYPE_CHECKING:
    from berth.out_of_tree.attaching import Attaching


class PluginUpkeep:
    """Attaches what is listed at the start, and follows what changes."""

    def __init__(
        self,
        settings: ProcessSettings,
        plugins: PluginsElsewhere,
        core: SchedulerCore,
        transports: Transports,
        tasks: RunningTasks,
    ) -> None:
        self._settings = settings
        self._plugins = plugins
        self._core = core
        self._tasks = tasks
        # Our own pod is ours to write about whether we lead or not.
        self._own_pods = Pods(transports.events)
        self._started = False
        plugins.rewire = core.rewire
        self.raw = RawKeeping(plugins, transports.main)
        self.raw.keep(wanted=plugins.want_objects)
        self._attaching: Attaching | None = None
        if plugins.hosted is not None:
            self.attaching.enable_listed(settings.sidecars)

    @property
    def attaching(self) -> "Attaching":
        """What changes the plugins; made where it is first asked for, by the loop that owns them."""
        if self._attaching is None:
            from berth.out_of_tree.attaching import Attaching  # noqa: PLC0415 (see the top)

            core = self._core
            self._attaching = Attaching(self._plugins.host, core.frameworks, core.handles, self._tasks.spawn)
            self._show_readiness()
        return self._attaching

    def start(self) -> None:
        """Follow list and directory, and show on our pod which plugins are ready."""
        self._started = True
        if self._settings.plugins_file or self._settings.directory is not None:
            self._follow_lists()
        self._show_readiness()

    def conditions(self) -> Mapping[tuple[str, str], float]:
        """Which condition of which plugin holds."""
        return {} if self._attaching is None else self._attaching.conditions()

    def end_recordings(self) -> None:
        """The scheduler ends."""
        if self._attaching is not None:
            self._attaching.end_recordings()

    def _show_readiness(self) -> None:
        """Begin to, once there are both plugins and something that runs."""
        if not self._started or self._attaching is None:
            return
        from berth.scheduler.plugin_readiness import OwnPod, PluginReadiness  # noqa: PLC0415 (see the top)

        if (pod := OwnPod.from_environment(os.environ)) is not None:
            readiness = PluginReadiness(self._attaching, self._own_pods, pod)
            self._tasks.spawn(readiness.follow(), "readiness of plugins")

    def _follow_lists(self) -> None:
        from berth.scheduler.plugin_directory import PluginDirectory  # noqa: PLC0415 (see the top)
        from berth.scheduler.plugin_list_file import PluginListFile  # noqa: PLC0415 (see the top)

        settings, attaching, keep_objects = self._settings, self.attaching, self.raw.begin
        listed = {spec.name: spec for spec in settings.sidecars}
        directory = PluginDirectory(settings.directory, listed, attaching, keep_objects)
        if settings.plugins_file:
            file = PluginListFile(
                settings.plugins_file, listed, attaching, keep_objects, use_directory=directory.use
            )
            self._tasks.spawn(file.follow(), "list of plugins")
        self._tasks.spawn(directory.follow(), "directory of plugins")
