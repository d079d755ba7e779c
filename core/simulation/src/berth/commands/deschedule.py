"""`berth deschedule`: pods that would stand better on another node, and their eviction."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from berth.cli.asking.cluster import KubeconfigCluster, asks_a_cluster
from berth.cli.failing import fail
from berth.commands.simulated_scheduler import (
    CONFIG,
    FEATURE_GATES,
    RELEASE,
    read_scheduler,
)
from berth.commands.simulating import OUTPUT, show

if TYPE_CHECKING:
    from berth.client.transport import Transport
    from berth.config.descheduling.policy import Policy
    from berth.descheduling.cluster import ClusterObjects
    from berth.descheduling.plan import DeschedulePlan
    from berth.simulation.plugins.plugin_settings import SchedulerSettings

EXIT_REFUSED = 3


@click.command()
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option(
    "--policy",
    "policy_file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A DeschedulerPolicy, descheduler/v1alpha2.",
)
@asks_a_cluster
@CONFIG
@FEATURE_GATES
@RELEASE
@click.option(
    "--execute/--dry-run", default=False, show_default=True, help="Evict, or only say what would be."
)
@click.option(
    "--max-evictions-per-minute",
    "max_per_minute",
    default=20.0,
    show_default=True,
    type=click.FloatRange(0.1, 6000),
)
@click.option(
    "--patience",
    "patience_seconds",
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(0),
    help="How long a pod may take to leave its node before the rest is left to the next run.",
)
@OUTPUT
def deschedule(
    *,
    inputs: tuple[str, ...],
    policy_file: Path,
    cluster: KubeconfigCluster,
    config_file: str,
    feature_gates: str,
    release: str,
    execute: bool,
    max_per_minute: float,
    patience_seconds: float,
    output: str,
) -> None:
    """Evict pods that today's rules would not place where they are, where a better place exists now.

    The plan is made by the scheduler's own engine: a pod goes only if its replacement would be bound to a
    better node, with every move before it made. It is printed first; only --execute evicts.

    INPUT is what `berth simulate` takes; without one, the cluster is read. Evictions are of a cluster only.

    Exits with 0, with 3 where evictions of the plan were refused or metrics that a strategy goes by could not
    be had, and with 2 where an input, the policy or the configuration is wrong or the cluster cannot be read.
    """
    # Imported here so that the other verbs start quickly.
    from berth.config.errors import ConfigError  # noqa: PLC0415 (see above)
    from berth.descheduling.cluster import read_files  # noqa: PLC0415 (see above)
    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (see above)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (see above)

    if inputs and execute:
        fail("--execute: INPUT is no cluster to evict from; leave INPUT out")
    if inputs and cluster != KubeconfigCluster():
        fail("--kubeconfig and --context have no meaning here: leave them or INPUT out")
    try:
        settings = read_scheduler(config_file, feature_gates, release=release)
        planning = _Planning(read_policy_file(policy_file), settings, output)
        if inputs:
            plan = planning.plan(read_files(inputs, planning.policy), now())
            planning.show(plan)
            sys.exit(EXIT_REFUSED if plan.failures else 0)
        pace = EvictionPace(max_per_minute, patience_seconds) if execute else None
        with cluster.asked():
            refused = asyncio.run(planning.live(cluster, pace))
    except (SimulationError, ConfigError, EventRegistrationError) as error:
        fail(error)
    sys.exit(EXIT_REFUSED if refused else 0)


class EvictionPace(NamedTuple):
    """How fast pods are evicted. Units: seconds."""

    max_per_minute: float
    patience_seconds: float


class _Planning(msgspec.Struct, frozen=True):
    """Makes plans, prints them, and carries them out."""

    policy: "Policy"
    settings: "SchedulerSettings"
    output: str

    def plan(self, cluster: "ClusterObjects", now: datetime) -> "DeschedulePlan":
        """The plan for the cluster as it is now. Raises: SimulationError."""
        from berth.descheduling.planner import plan  # noqa: PLC0415 (quick start)
        from berth.simulation.running.options import SimulationOptions  # noqa: PLC0415 (quick start)

        return plan(cluster, self.policy, SimulationOptions(*self.settings), now)

    def show(self, plan: "DeschedulePlan") -> None:
        """Print the plan."""
        from berth.descheduling.text import plan_lines  # noqa: PLC0415 (quick start)

        show(plan, self.output, plan_lines(plan))

    async def live(self, cluster: KubeconfigCluster, pace: EvictionPace | None) -> bool:
        """Plan for a live cluster, and evict at that pace; whether evictions were refused or metrics failed.

        Raises: SimulationError, ClientError.
        """
        from berth.client.transport import Transport  # noqa: PLC0415 (quick start)
        from berth.descheduling.cluster import read_live  # noqa: PLC0415 (quick start)

        endpoint = await asyncio.to_thread(cluster.endpoint)
        transport = Transport(endpoint)
        try:
            # A plan has an event loop of its own, in virtual time.
            at = now()
            plan = await asyncio.to_thread(self.plan, await read_live(transport, self.policy, at), at)
            self.show(plan)
            refused = pace is not None and await self._execute(transport, plan, pace)
            return refused or bool(plan.failures)
        finally:
            await transport.aclose()

    async def _execute(self, transport: "Transport", plan: "DeschedulePlan", pace: EvictionPace) -> bool:
        from berth.client.api import Api  # noqa: PLC0415 (quick start)
        from berth.descheduling.eviction import Evicting, PlanEvictions  # noqa: PLC0415 (quick start)
        from berth.descheduling.text import done_lines  # noqa: PLC0415 (quick start)

        evicting = Evicting(
            Api(transport),
            max_per_minute=pace.max_per_minute,
            sleep=asyncio.sleep,
            patience_seconds=pace.patience_seconds,
            grace_period_seconds=self.policy.grace_period_seconds,
        )
        found = PlanEvictions(evictions=await evicting.carry_out(plan))
        show(found, self.output, done_lines(found.evictions))
        return found.any_refused


def now() -> datetime:
    """The time."""
    from berth.framework.clock import SYSTEM_CLOCK  # noqa: PLC0415 (quick start)

    return datetime.fromtimestamp(SYSTEM_CLOCK.wall(), UTC)


def read_policy_file(file: Path) -> "Policy":
    """The policy of --policy; ends the command where the file cannot be read. Raises: PolicyError."""
    from berth.config.descheduling.policy_file import MAX_BYTES, read_policy  # noqa: PLC0415 (quick start)

    try:
        with file.open("rb") as stream:
            return read_policy(stream.read(MAX_BYTES + 1), str(file))
    except OSError as error:
        fail(f"--policy: {file}: {error.strerror or error}; give a file that can be read")
