"""Which sidecars there are, kept up while the scheduler runs.

Attached, replaced and detached by request (plugin_admin.py), by the list (plugin_list_file.py) and by the
directory where they appear (plugin_directory.py); shown on our own pod (plugin_readiness.py). All of that is
imported with the first of them (out_of_tree_plugins.py says why).
"""

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from berth.client.pods import PodWrites
from berth.scheduler.loop.running_tasks import RunningTasks
from berth.scheduler.process_options import ProcessOptions
from berth.scheduler.scheduler import Scheduler
from berth.scheduler.sidecars.out_of_tree_plugins import OutOfTreePlugins
from berth.scheduler.watching.raw_keeping import RawKeeping
from berth.scheduler.writing.own_pod_conditions import OwnPod, OwnPodConditions

if TYPE_CHECKING:
    from berth.out_of_tree.lifecycle.attaching import Attaching


class PluginUpkeep:
    """Attaches what is listed at the start, and follows what changes.

    `own_pods` writes about the pod that this process runs in, whether it leads or not.
    """

    def __init__(
        self,
        options: ProcessOptions,
        *,
        plugins: OutOfTreePlugins,
        scheduler: Scheduler,
        raw: RawKeeping,
        own_pods: PodWrites,
        tasks: RunningTasks,
    ) -> None:
        self.raw = raw
        self._options = options
        self._plugins = plugins
        self._scheduler = scheduler
        self._own_pods = own_pods
        self._tasks = tasks
        self._started = False
        self.raw.keep(wanted=plugins.want_objects)
        self._attaching: Attaching | None = None
        if plugins.hosted is not None:
            self.attaching.enable_listed(options.sidecars)

    @property
    def attaching(self) -> "Attaching":
        """What changes the plugins; made where it is first asked for, by the loop that owns them."""
        if self._attaching is None:
            from berth.out_of_tree.lifecycle.attaching import Attaching  # noqa: PLC0415 (see the top)

            frameworks, handles = self._scheduler.profiles.frameworks, self._scheduler.handles
            self._attaching = Attaching(self._plugins.host, frameworks, handles, self._tasks.spawn)
            self._show_readiness()
        return self._attaching

    def start(self) -> None:
        """Follow list and directory, and show on our pod which plugins are ready."""
        self._started = True
        if self._options.plugins_file or self._options.directory is not None:
            self._follow_lists()
        self._show_readiness()

    def conditions(self) -> Mapping[tuple[str, str], float]:
        """Which condition of which plugin holds."""
        return {} if self._attaching is None else self._attaching.conditions()

    def lines(self) -> "list[dict[str, Any]]":
        """Every plugin in a line, as `berth plugin list` has it."""
        return [] if self._attaching is None else self._attaching.list()

    def end_recordings(self) -> None:
        """The scheduler ends."""
        if self._attaching is not None:
            self._attaching.end_recordings()

    def _show_readiness(self) -> None:
        """Begin to, once there are both plugins and something that runs."""
        if not self._started or self._attaching is None:
            return
        from berth.scheduler.sidecars.plugin_readiness import plugin_conditions  # noqa: PLC0415 (see the top)

        if (pod := OwnPod.from_environment(os.environ)) is not None:
            shown = OwnPodConditions(partial(plugin_conditions, self._attaching), self._own_pods, pod)
            self._tasks.spawn(shown.follow(), "readiness of plugins")

    def _follow_lists(self) -> None:
        from berth.scheduler.sidecars.plugin_directory import PluginDirectory  # noqa: PLC0415 (see the top)
        from berth.scheduler.sidecars.plugin_list_file import PluginListFile  # noqa: PLC0415 (see the top)

        options, attaching, keep_objects = self._options, self.attaching, self.raw.begin
        listed = {spec.name: spec for spec in options.sidecars}
        directory = PluginDirectory(options.directory, listed, attaching, keep_objects)
        if options.plugins_file:
            file = PluginListFile(
                options.plugins_file, listed, attaching, keep_objects, use_directory=directory.use
            )
            self._tasks.spawn(file.follow(), "list of plugins")
        self._tasks.spawn(directory.follow(), "directory of plugins")
