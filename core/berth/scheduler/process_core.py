"""The core of a scheduler process: assembled with its writers, events, telemetry and plugins."""

import random
from dataclasses import dataclass

from berth.client.events import EventRecorder
from berth.framework.clock import Clock
from berth.scheduler.attempt_log import AttemptLog
from berth.scheduler.background import AsyncioBackground
from berth.scheduler.core_assembly import SchedulerCore, Surroundings, assemble
from berth.scheduler.event_recording import PodEvents
from berth.scheduler.plugins_elsewhere import PluginsElsewhere
from berth.scheduler.process_settings import ProcessSettings
from berth.scheduler.writers import Writers
from berth.telemetry.fan_out import fan_out
from berth.telemetry.metrics import SchedulerMetrics


@dataclass(frozen=True, slots=True)
class CoreMeans:
    """What a process gives its core to work with."""

    settings: ProcessSettings
    writers: Writers
    recorder: EventRecorder
    background: AsyncioBackground
    clock: Clock
    metrics: SchedulerMetrics
    attempts: AttemptLog
    plugins: PluginsElsewhere

    def assemble(self) -> SchedulerCore:
        """The core that the configuration describes.

        Raises: BuildError, EventRegistrationError.
        """
        return assemble(self.settings.loaded, self.plugins.registry(), self._surroundings())

    def _surroundings(self) -> Surroundings:
        settings, writers, metrics = self.settings, self.writers, self.metrics
        tell = fan_out(
            settings.tracing.on_record, metrics.on_record, self.attempts.on_record, settings.on_record
        )
        return Surroundings(
            writer=writers.pods,
            volume_writer=writers.volumes,
            claim_writer=writers.claims,
            pod_group_writer=writers.pod_groups,
            recorder=PodEvents(self.recorder),
            background=self.background,
            clock=self.clock,
            chance=random.Random(settings.seed),
            on_record=self.plugins.with_records(tell, self.background),
            before_plugins=self.plugins.connect,
            queue_metrics=metrics.queue,
            preemption_metrics=metrics.preemption,
            pod_group_metrics=metrics.pod_groups,
            call_metrics=metrics.calls,
            claim_metrics=metrics.claims,
            on_over_budget=metrics.over_budget,
            event_handled=metrics.event_handled,
            max_in_unschedulable_seconds=settings.max_in_unschedulable_seconds,
            extenders=self.plugins.extenders,
        )
