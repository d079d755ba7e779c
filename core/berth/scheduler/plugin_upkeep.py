"""Which plugins in other processes there are, kept up while the scheduler runs.

Attached, replaced and detached by request (plugin_admin.py), by the list (plugin_list_file.py) and by the
directory where they appear (plugin_directory.py); shown on our own pod (plugin_readiness.py).
"""

import os

from berth.client.pods import Pods
from berth.out_of_tree.attaching import Attaching
from berth.scheduler.core_assembly import SchedulerCore
from berth.scheduler.plugin_directory import PluginDirectory
from berth.scheduler.plugin_list_file import PluginListFile
from berth.scheduler.plugin_readiness import OwnPod, PluginReadiness
from berth.scheduler.plugins_elsewhere import PluginsElsewhere
from berth.scheduler.process_settings import ProcessSettings
from berth.scheduler.raw_keeping import RawKeeping
from berth.scheduler.running_tasks import RunningTasks
from berth.scheduler.transports import Transports


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
        self._tasks = tasks
        # Our own pod is ours to write about whether we lead or not.
        self._own_pods = Pods(transports.events)
        host = plugins.host
        host.rewire = core.rewire
        self.raw = RawKeeping(host, transports.main)
        self.raw.keep(wanted=bool(host.versions) or plugins.extenders.want_objects)
        self.attaching = Attaching(host, core.frameworks, core.handles, tasks.spawn)
        self.attaching.enable_listed(settings.sidecars)

    def start(self) -> None:
        """Follow list and directory, and show on our pod which plugins are ready."""
        self._follow_lists()
        if (pod := OwnPod.from_environment(os.environ)) is not None:
            readiness = PluginReadiness(self.attaching, self._own_pods, pod)
            self._tasks.spawn(readiness.follow(), "readiness of plugins")

    def _follow_lists(self) -> None:
        settings, attaching, keep_objects = self._settings, self.attaching, self.raw.begin
        listed = {spec.name: spec for spec in settings.sidecars}
        directory = PluginDirectory(settings.directory, listed, attaching, keep_objects)
        if settings.plugins_file:
            file = PluginListFile(
                settings.plugins_file, listed, attaching, keep_objects, use_directory=directory.use
            )
            self._tasks.spawn(file.follow(), "list of plugins")
        if settings.plugins_file or settings.directory is not None:
            self._tasks.spawn(directory.follow(), "directory of plugins")
