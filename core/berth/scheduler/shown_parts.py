"""What a scheduler process shows of itself: health, metrics, configuration, plugins, cache and decisions.

Source: spec/core.md 8; spec/config.md 15.
"""

from dataclasses import dataclass

from berth.config.dump import to_v1
from berth.scheduler.attempt_log import AttemptLog
from berth.scheduler.cache_debugger import CacheDebugger
from berth.scheduler.component_pages import component_pages
from berth.scheduler.core_assembly import SchedulerCore
from berth.scheduler.explain import Explainer
from berth.scheduler.health import Check, ping
from berth.scheduler.leadership import Leadership
from berth.scheduler.plugin_admin import PluginAdmin
from berth.scheduler.plugin_upkeep import PluginUpkeep
from berth.scheduler.process_settings import ProcessSettings
from berth.scheduler.profiling import profiling_pages
from berth.scheduler.scheduling_loop import SchedulingLoop
from berth.scheduler.serving import Endpoints
from berth.telemetry.logs import set_verbosity
from berth.telemetry.metrics import SchedulerMetrics
from berth.telemetry.pod_resources import pod_resource_text


@dataclass(frozen=True, slots=True)
class ShownParts:
    """The parts of which something is shown."""

    settings: ProcessSettings
    core: SchedulerCore
    metrics: SchedulerMetrics
    attempts: AttemptLog
    plugins: PluginUpkeep
    loop: SchedulingLoop
    leadership: Leadership
    debugger: CacheDebugger

    def watch_metrics(self) -> None:
        """Let the gauges mirror the parts."""
        metrics, shared = self.metrics, self.core.shared
        metrics.watch_tracing(self.settings.tracing)
        metrics.watch_plugins(self.plugins.attaching.conditions)
        metrics.watch_queue(shared.queue.sizes)
        metrics.watch_cache(shared.cache)
        metrics.watch_equal_pods(shared.equal_pods.outcomes)
        metrics.watch_tasks(shared.at_work)
        if self.core.dispatcher is not None:
            metrics.watch_calls(self.core.dispatcher.pending)
        election = self.settings.loaded.configuration.leader_election
        if election.leader_elect:
            metrics.watch_leadership(election.resource_name, lambda: self.leadership.leads)

    def endpoints(self, *, synced: Check, ending: Check) -> Endpoints:
        """What is served; both checks say why the process is not ready, "" where it is."""
        configuration = self.settings.loaded.configuration
        profiled = configuration.enable_profiling
        leading = self._leading()
        return Endpoints(
            self.metrics.text,
            self.metrics.reset,
            lambda: to_v1(configuration),
            healthz=leading or {"ping": ping},
            readyz={**leading, "shutdown": ending, "sched-handler-sync": synced},
            set_verbosity=set_verbosity if profiled else None,
            plugins=PluginAdmin(self.plugins.attaching, self.plugins.raw.begin).mount,
            explain=Explainer(self.core, self.attempts, self.loop.turn).explain,
            cache=self.debugger.report,
            resource_metrics=self._resource_metrics,
            pages={
                **component_pages(self.settings.flags, self.core.feature_enabled),
                **(profiling_pages() if profiled else {}),
            },
        )

    def _leading(self) -> dict[str, Check]:
        elected = self.settings.loaded.configuration.leader_election.leader_elect
        return {"leaderElection": self.leadership.check} if elected else {}

    def _resource_metrics(self) -> bytes:
        return pod_resource_text(self.debugger.pods.objects()) if self.leadership.leads else b""
