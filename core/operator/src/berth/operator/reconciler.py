"""One look at one Scheduler: its objects are applied, what is left over goes, its status is written.

Called by: process, with one key after the other; it never runs twice at a time.
"""

from collections.abc import Callable
from enum import Enum, auto

import msgspec

from berth.client.api import Api
from berth.client.errors import ClientError, NotFoundError
from berth.client.events import EventRecorder
from berth.client.resources import SCHEDULER_PLUGINS, SCHEDULERS, Resource
from berth.framework.clock import SYSTEM_CLOCK, Clock
from berth.operator.errors import NotControlledError, PlanError, ServedTwiceError
from berth.operator.issuing import Issuing
from berth.operator.kinds import VERSION, Json, SchedulerKey, key_of
from berth.operator.kube_scheduler import KubeSchedulerLease
from berth.operator.managed_objects import Applied, ManagedObjects, apply
from berth.operator.metrics import OperatorMetrics
from berth.operator.observed import ClusterView
from berth.operator.profile_names import profile_problem, unknown_profiles
from berth.operator.rendering import SchedulerDefaults, SchedulerPlan, plan
from berth.operator.rendering.names import base_name, descheduler_name
from berth.operator.reporting.announcements import Announcements
from berth.operator.reporting.arguments_condition import accepted, arguments_accepted
from berth.operator.reporting.conditions import Problem, conditions, plugin_states
from berth.operator.reporting.descheduling_condition import descheduling
from berth.operator.reporting.kubernetes_condition import kubernetes_tested
from berth.operator.reporting.leading_condition import LeadingConditions
from berth.operator.reporting.status import plugin_status, ready, scheduler_status
from berth.operator.rivals import yields_to


class ReconcileResult(Enum):
    """What came of a look at a Scheduler."""

    DONE = auto()
    WAITS = auto()
    """Nothing failed: it waits for another scheduler, whose end may come without a sign."""
    FAILED = auto()
    """Something is not as the spec asks, which its conditions say; another look may find it mended."""


class Reconciler:
    """Brings what is kept for Schedulers in line with them."""

    def __init__(
        self,
        api: Api,
        observed: ClusterView,
        events: EventRecorder,
        metrics: OperatorMetrics,
        *,
        issuing: Issuing,
        settings: Callable[[], SchedulerDefaults],
        server: Callable[[], str],
        leading: LeadingConditions,
        now: Callable[[], str],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._api = api
        self._kube_scheduler = KubeSchedulerLease(api, clock)
        self._observed = observed
        self._announcements = Announcements(events)
        self._metrics = metrics
        self._issuing = issuing
        self._settings = settings
        self._server = server
        self._leading = leading
        self._now = now
        self._objects = ManagedObjects(api, observed, metrics, self._drifted)

    async def reconcile(self, key: SchedulerKey) -> ReconcileResult:
        """Look at a Scheduler; unless DONE, look again later.

        Raises: ClientError where its status cannot be written, or what it leaves not be deleted; any other
            error that it ran into. Look again then as well.
        """
        scheduler = self._observed.scheduler(key)
        if scheduler is None:
            await self._forget(key)
            return ReconcileResult.DONE
        problem: Problem | None = None
        failure: Exception | None = None
        made: SchedulerPlan | None = None
        outcome = ReconcileResult.DONE
        try:
            await self._kube_scheduler.check(scheduler)
            settings = msgspec.structs.replace(self._settings(), authority=await self._issuing.bundle())
            served_twice = self._yields_to(scheduler)
            wanted = scheduler if served_twice is None else _without_replicas(scheduler)
            made = plan(wanted, self._observed.plugins_in(key.namespace), settings)
            problem = await self._apply(scheduler, made)
            if problem is not None:
                outcome = ReconcileResult.FAILED
            elif served_twice is not None:
                problem, outcome = _problem(served_twice), ReconcileResult.WAITS
        except ServedTwiceError as error:
            problem, outcome = _problem(error), ReconcileResult.WAITS
        except PlanError as error:
            problem = _problem(error)
        except ClientError as error:
            problem, outcome = Problem("ApplyFailed", str(error)), ReconcileResult.FAILED
        except Exception as error:  # noqa: BLE001 (one Scheduler's, and raised once that is reported)
            problem, failure = Problem("InternalError", f"{type(error).__name__}: {error}"), error
        fingerprint = made.fingerprint if made is not None and problem is None else ""
        await self._report(scheduler, made, problem, fingerprint)
        if failure is not None:
            raise failure
        return outcome

    async def _forget(self, key: SchedulerKey) -> None:
        self._metrics.forget(key)
        self._leading.forget(key)
        mirrors = self._observed.schedulers, self._observed.plugins
        left = (one["metadata"].get("uid", "") for mirror in mirrors for one in mirror.objects.values())
        self._announcements.keep_only(set(left))
        if not self._observed.all_pods_of(key):
            await self._issuing.collect(key)
            await self._objects.collect(key)

    def _yields_to(self, scheduler: Json) -> ServedTwiceError | None:
        return yields_to(
            scheduler,
            self._observed.schedulers.objects.values(),
            lambda one: self._objects.found("Deployment", one.namespace, base_name(one)),
        )

    async def _apply(self, scheduler: Json, made: SchedulerPlan) -> Problem | None:
        """Give what is wrong afterwards; what is another's may go without a sign to the operator."""
        done = Applied()
        try:
            await self._issuing.keep(scheduler)
        except (NotControlledError, ClientError) as error:
            done.wrong.append(("Secret", error))
        await self._objects.apply(scheduler, made, done)
        try:
            await self._objects.prune(scheduler, made, done)
        except ClientError as error:
            done.wrong.append(("", error))
        if not done.wrong:
            return None
        refused = any(isinstance(error, NotControlledError) for _, error in done.wrong)
        reason = NotControlledError.reason if refused else "ApplyFailed"
        return Problem(reason, "; ".join(str(error) for _, error in done.wrong))

    async def _report(
        self, scheduler: Json, made: SchedulerPlan | None, problem: Problem | None, fingerprint: str
    ) -> None:
        key = key_of(scheduler)
        deployment = self._objects.found("Deployment", key.namespace, base_name(key))
        states = self._plugin_states(scheduler, self._running_plugins(key, scheduler, made))
        pods = self._observed.pods_of(key)
        found = conditions(deployment, pods, states, problem, self._observed.mount_failures(pods))
        cron_job = self._objects.found("CronJob", key.namespace, descheduler_name(key))
        found += descheduling(scheduler["spec"].get("descheduler"), cron_job)
        found += [
            *arguments_accepted(states, pods),
            *self._leading.condition(scheduler, pods),
            *kubernetes_tested(self._server()),
        ]
        self._metrics.conditions(key, found)
        status = scheduler_status(
            scheduler, deployment, states, found, fingerprint=fingerprint, now=self._now()
        )
        await self._write_status("Scheduler", SCHEDULERS, scheduler, status)
        self._announcements.conditions("Scheduler", scheduler, found)
        for plugin in tuple(self._observed.plugins_in(key.namespace).values()):
            await self._report_plugin(plugin)

    def _running_plugins(self, key: SchedulerKey, scheduler: Json, made: SchedulerPlan | None) -> list[Json]:
        if made is not None:
            return list(made.configuration.plugins)
        known = self._observed.plugins_in(key.namespace)
        return [known[one["name"]] for one in scheduler["spec"].get("plugins") or () if one["name"] in known]

    def _plugin_states(self, scheduler: Json, plugins: list[Json]) -> dict[str, str]:
        misnamed = {
            plugin["metadata"]["name"]: profile_problem(
                plugin, scheduler, self._observed.users_of(key_of(plugin))
            )
            for plugin in plugins
        }
        return plugin_states(plugins, self._observed.pods_of(key_of(scheduler)), misnamed)

    async def _report_plugin(self, plugin: Json) -> None:
        users = self._observed.users_of(key_of(plugin))
        states = {
            key_of(user): self._plugin_states(user, [plugin])[plugin["metadata"]["name"]] for user in users
        }
        pods = [pod for user in users for pod in self._observed.pods_of(key_of(user))]
        arguments = arguments_accepted([plugin["metadata"]["name"]], pods)
        found = [ready(states, unknown_profiles(plugin, users)), *arguments]
        status = plugin_status(plugin, states, found, accepted(plugin, pods), self._now())
        await self._write_status("SchedulerPlugin", SCHEDULER_PLUGINS, plugin, status)
        self._announcements.conditions("SchedulerPlugin", plugin, arguments)

    async def _write_status(self, kind: str, resource: Resource, document: Json, status: Json) -> None:
        if document.get("status") == status:
            return
        metadata = {"name": document["metadata"]["name"], "namespace": document["metadata"]["namespace"]}
        wanted = {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "status": status}
        try:
            await apply(self._api, resource, wanted, "status")
        except NotFoundError:  # it went in between
            return

    def _drifted(self, key: SchedulerKey, kind: str, name: str) -> None:
        gone = {"metadata": {"namespace": key.namespace, "name": key.name}}
        scheduler = self._observed.scheduler(key) or gone
        note = f"{kind} {name} was changed back"
        self._announcements.say("Scheduler", scheduler, "Normal", "DriftCorrected", note)

    def event_of_all(self, namespace: str, kind: str, reason: str, note: str) -> None:
        """Make an event of every Scheduler of a namespace."""
        for scheduler in tuple(self._observed.schedulers.objects.values()):
            if scheduler["metadata"]["namespace"] == namespace:
                self._announcements.event("Scheduler", scheduler, kind, reason, note)


def _problem(error: PlanError) -> Problem:
    return Problem(error.reason, str(error))


def _without_replicas(scheduler: Json) -> Json:
    """Give the Scheduler as it is while it has stopped for another one."""
    return {**scheduler, "spec": {**scheduler["spec"], "replicas": 0}}
