"""The pages of a scheduler process: health, metrics, configuration, plugins, cache and decisions.

The control thread serves it. What belongs to the scheduling loop is asked of that loop (`turns.ask`):
plugins, cache, decisions, a new start of the metrics. All else is read in the control thread, whatever the
loop does.

Source: cmd/kube-scheduler/app/server.go newEndpointsHandler (Kubernetes v1.36).
"""

import asyncio
import os
from collections.abc import Awaitable, Mapping
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING

import msgspec

from berth.config.dump import to_v1
from berth.config.shards import Shard
from berth.explain.attempt_log import AttemptLog
from berth.framework.clock import SYSTEM_CLOCK
from berth.live_page.collecting import Collected, Collector
from berth.objects.pods.pod import Pod
from berth.scheduler.identity import Identity
from berth.scheduler.leading.leaderships import Leaderships
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.scheduler.pages.cache_debugger import CacheDebugger
from berth.scheduler.pages.explain_access import ExplainAccess
from berth.scheduler.process_options import ProcessOptions
from berth.scheduler.process_recording import no_plugins_while_recorded
from berth.scheduler.scheduler import Scheduler
from berth.scheduler.sidecars.plugin_changes import KEPT_BY, how_long, where_to_change
from berth.scheduler.sidecars.plugin_upkeep import PluginUpkeep
from berth.serving.health import Check, NotedCheck, ping
from berth.telemetry.logs import set_verbosity
from berth.telemetry.metrics.pod_resources import pod_resource_text
from berth.telemetry.metrics.registry import SchedulerMetrics

if TYPE_CHECKING:
    from berth.explain.overviews import Overviews
    from berth.scheduler.loop.fair_turn import UsersTurn
    from berth.serving.endpoints import Endpoints, Mount, Page


class StatusPages(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered on each path.

    `synced` and `ending` say why the process is not ready, "" where it is.
    """

    options: ProcessOptions
    identity: Identity
    scheduler: Scheduler
    metrics: SchedulerMetrics
    attempts: AttemptLog
    plugins: PluginUpkeep
    turn: asyncio.Lock
    leaderships: Leaderships
    shards: tuple[Shard, ...]
    explain_access: ExplainAccess
    debugger: CacheDebugger
    turns: LoopTurns
    synced: Check
    ending: Check
    live: Collector | None = None
    """What the live page shows; None where it is not served."""
    loop_thread: int = msgspec.field(default_factory=get_ident)
    """The thread of the scheduling loop, in which the pages are made."""

    def endpoints(self) -> "Endpoints":
        """Everything that is served."""
        # Imported here: with aiohttp it takes a third of a second of CPU, which the first lists need not wait
        # for.
        from berth.scheduler.pages.object_sizes import SizesPage  # noqa: PLC0415 (see above)
        from berth.serving.component_pages import component_pages  # noqa: PLC0415 (see above)
        from berth.serving.endpoints import Endpoints  # noqa: PLC0415 (see above)
        from berth.serving.profiling import profiling_pages  # noqa: PLC0415 (see above)

        configuration = self.options.loaded.configuration
        profiled = configuration.enable_profiling
        leading = self.leaderships.checks()
        turning: dict[str, Check] = {"schedulingLoop": NotedCheck(self.turns.check, self.turns.note)}
        ask = self.turns.ask
        return Endpoints(
            self.metrics.text,
            lambda: ask(self._reset_metrics),
            lambda: to_v1(configuration),
            healthz={**(leading or {"ping": ping}), **turning},
            livez={"ping": ping, **turning},
            readyz={**leading, "shutdown": self.ending, "sched-handler-sync": self.synced},
            set_verbosity=set_verbosity if profiled else None,
            plugins=self._plugin_admin(),
            explanations=self._explanations(),
            cache=lambda: ask(self.debugger.report),
            open_metrics=partial(self.metrics.text, open_metrics=True),
            resource_metrics=self._resource_metrics,
            headers=self.identity.headers(),
            pages={
                "/debug/sizes": SizesPage(self, self.turn, self.turns).answer,
                **component_pages(
                    self.options.flags, self.scheduler.feature_enabled, self.options.loaded.gates.version
                ),
                **(profiling_pages(self.turns.loop, self.loop_thread) if profiled else {}),
                **({} if self.live is None else self._live_pages(self.live)),
            },
        )

    def _plugin_admin(self) -> "Mount":
        from berth.scheduler.sidecars.plugin_admin import PluginAdmin  # noqa: PLC0415 (see endpoints)

        options = self.options
        elects = options.loaded.configuration.leader_election.leader_elect
        return PluginAdmin(
            lambda: self.plugins.attaching,
            self.plugins.lines,
            self.plugins.raw.begin,
            self.turns,
            self._why_plugins_are_kept,
            holds=how_long(elects=elects, plugins_file=options.plugins_file),
        ).mount

    def _why_plugins_are_kept(self) -> str:
        """Why no request may change the plugins; "" where one may."""
        return no_plugins_while_recorded(self.options) or where_to_change(
            os.environ.get(KEPT_BY, ""), self.leaderships.first
        )

    def _explanations(self) -> "Mount":
        from berth.scheduler.loop.fair_turn import FairTurn  # noqa: PLC0415
        from berth.scheduler.pages.explaining import (  # noqa: PLC0415 (see endpoints)
            ExplainingHere,
            merged_nodes,
            new_explainer,
            new_overviews,
        )

        watched = self.debugger.pods.objects
        queue = self.scheduler.queue
        turn = FairTurn(self.turn, lambda: bool(queue.sizes().active), SYSTEM_CLOCK)

        def overviews(of_question: "UsersTurn") -> "Overviews":
            explainer = new_explainer(self.scheduler, self.attempts, of_question, watched)
            return new_overviews(self.scheduler, explainer, watched)

        here = ExplainingHere(
            identity=self.explain_access.identity,
            leaderships=self.leaderships,
            shards=self.shards,
            turns=self.turns,
            turn=turn,
            overviews=overviews,
        )
        return self.explain_access.pages(here, merged_nodes).mount

    def _live_pages(self, live: Collector) -> "Mapping[str, Page]":
        from berth.live_page.of_the_leader import OfTheLeader  # noqa: PLC0415 (see endpoints)
        from berth.live_page.pages import LivePages  # noqa: PLC0415 (see endpoints)

        def here() -> Awaitable[Collected]:
            return self.turns.ask(live.collect)

        profiles = frozenset(profile for shard in self.shards for profile in shard.profiles)
        of_leader = OfTheLeader(self.explain_access.page_of_leader(profiles), here)
        leads = self.leaderships.leads_any
        return LivePages(here, SYSTEM_CLOCK, of_leader.collect, leads).pages()

    async def _reset_metrics(self) -> None:
        self.metrics.reset()

    async def _resource_metrics(self) -> bytes:
        if not self.leaderships.first.leads:
            return b""
        pods = await self.turns.ask(self._pods)
        return await asyncio.to_thread(pod_resource_text, pods)

    async def _pods(self) -> list[Pod]:
        return self.debugger.pods.objects()
