"""`berth simulate`: what a scheduler would do, without a cluster to do it to."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from berth.cli.failing import fail
from berth.commands.simulated_scheduler import FEATURE_GATES, RELEASE, read_scheduler
from berth.commands.simulating import OUTPUT, QUEUES_EVERY, configured, show
from berth.commands.simulation_comparing import compare
from berth.commands.simulation_consolidating import consolidate
from berth.commands.simulation_serving import serve

if TYPE_CHECKING:
    from berth.simulation.plugins.scheduler_objects import RenderedScheduler
    from berth.simulation.reading.inputs import ClusterInput

EXIT_DIFFERENT = 1
EXIT_PENDING = 3
COPIES = 1_000_000
"""This many copies are tried at most."""


class Simulate(click.Group):
    """A group whose first argument may be a subcommand or an input: then it is `run` that is meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` before arguments that begin with no subcommand."""
        if args and args[0] not in (*self.commands, "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=Simulate)
def simulate() -> None:
    """Say what a scheduler would do with a cluster, in virtual time and without touching it.

    `berth simulate INPUT...` is short for `berth simulate run INPUT...`.
    """


simulate.add_command(compare)
simulate.add_command(consolidate)
simulate.add_command(serve)


@simulate.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@configured
@RELEASE
@QUEUES_EVERY
@click.option("--until", "max_seconds", type=click.FloatRange(0), help="End after so many virtual seconds.")
@click.option(
    "--plot", "plot_to", metavar="FILE", help="Plot queues over time to a PNG file, or to the terminal (-)."
)
def run(
    *,
    inputs: tuple[str, ...],
    config_file: str,
    plugins_file: str,
    feature_gates: str,
    ways: tuple[str, ...],
    seed: int,
    what_if: tuple[str, ...],
    output: str,
    release: str,
    queues_every: float,
    max_seconds: float | None,
    plot_to: str | None,
) -> None:
    """Schedule the pending pods of a cluster, and say what came of each.

    INPUT is a snapshot (`berth snapshot`), YAML or JSON as `kubectl get ... -o yaml` prints it, a folder of
    such files, a trace of SimKube, `openb` for the trace that comes with Berth, or a folder with that
    trace's own CSV files. Several make one cluster. A Scheduler among its objects is the one that is
    simulated, unless --config names another.

    Exits with 0 where every pod has a node at the end, with 3 where some are pending, and with 2 where an
    input or the configuration is wrong.
    """
    # Imported here so that the other verbs start quickly.
    from msgspec import structs  # noqa: PLC0415 (see above)

    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (see above)
    from berth.simulation.comparing.queue_plots import plot_queues  # noqa: PLC0415 (see above)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (see above)
    from berth.simulation.reading.inputs import read_cluster  # noqa: PLC0415 (see above)
    from berth.simulation.running.engine import simulate as simulated  # noqa: PLC0415 (see above)
    from berth.simulation.running.options import SimulationOptions  # noqa: PLC0415 (see above)
    from berth.simulation.running.outcome import WITHOUT, summed_up  # noqa: PLC0415 (see above)
    from berth.simulation.text import outcome_lines  # noqa: PLC0415 (see above)
    from berth.simulation.what_if.changes import changed, evicted_by, read_changes  # noqa: PLC0415 (see above)
    from berth.simulation.what_if.drain_messages import drain_messages  # noqa: PLC0415 (see above)

    try:
        changes, read = read_changes(what_if), read_cluster(inputs, seed=seed)
        settings = read_scheduler(
            config_file,
            feature_gates,
            plugins_file,
            ways=ways,
            objects=_objects(config_file, read, inputs),
            release=release,
        )
        cluster = changed(read, changes)
        options = SimulationOptions(*settings, seed=seed, changes=changes, queues_every=queues_every)
        if max_seconds is not None:
            options = msgspec.structs.replace(options, max_seconds=max_seconds)
        outcome = simulated(cluster, options)
        if changes:
            before = summed_up(WITHOUT, simulated(read, msgspec.structs.replace(options, changes=())))
            evicted = sorted(pod.key for pod in evicted_by(read, cluster))
            drain = drain_messages(read, cluster)
            outcome = structs.replace(outcome, evicted=evicted, before=before, drain=drain)
        if plot_to is not None:
            plot_queues(outcome.queues, plot_to)
    except (SimulationError, EventRegistrationError) as error:
        fail(error)
    show(outcome, output, outcome_lines(outcome))
    sys.exit(EXIT_PENDING if outcome.pending else 0)


@simulate.command()
@click.argument("pod_file", metavar="POD", type=click.Path(path_type=Path))
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@configured
@RELEASE
@click.option("--most", type=click.IntRange(1, COPIES), help="So many copies, and no more.")
@click.option(
    "--by", "labels", multiple=True, metavar="LABEL", help="Count copies by this label of nodes. Repeatable."
)
def fill(
    *,
    pod_file: Path,
    inputs: tuple[str, ...],
    config_file: str,
    plugins_file: str,
    feature_gates: str,
    ways: tuple[str, ...],
    seed: int,
    what_if: tuple[str, ...],
    output: str,
    release: str,
    most: int | None,
    labels: tuple[str, ...],
) -> None:
    """Say how many more copies of the pod in the file POD fit into a cluster.

    Several pods in POD are placed in turn, by their annotations simulation.berth.dev/weight. Pods of the
    cluster that have no node are left out, and no pod is preempted; those that --what-if takes from their
    nodes are placed first.

    Exits with 0, with 3 where fewer than --most copies fit, and with 2 where an input or the configuration is
    wrong.
    """
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start)
    from berth.simulation.placing.fill import POOLS  # noqa: PLC0415 (quick start)
    from berth.simulation.placing.fill import fill as filled  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.inputs import read_cluster, read_pods  # noqa: PLC0415 (quick start)
    from berth.simulation.running.options import SimulationOptions  # noqa: PLC0415 (quick start)
    from berth.simulation.text import fill_lines  # noqa: PLC0415 (quick start)
    from berth.simulation.what_if.changes import changed_at_once, read_changes  # noqa: PLC0415 (quick start)

    try:
        changes, read = read_changes(what_if), read_cluster(inputs, seed=seed)
        settings = read_scheduler(
            config_file,
            feature_gates,
            plugins_file,
            ways=ways,
            objects=_objects(config_file, read, inputs),
            release=release,
        )
        pods, options = read_pods(pod_file, read), SimulationOptions(*settings, seed=seed)
        then = changed_at_once(read, changes) if changes else None
        found = filled(read, pods, options, most=most or COPIES, labels=labels or POOLS, then=then)
    except SimulationError as error:
        fail(error)
    show(found, output, fill_lines(found))
    sys.exit(EXIT_PENDING if most is not None and found.stopped_by else 0)


@simulate.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--config",
    "config_file",
    default="",
    metavar="FILE",
    help="Ask this KubeSchedulerConfiguration about each decision; `default` stands for kube-scheduler's "
    "own defaults.",
)
@FEATURE_GATES
@click.option(
    "--show", "shown", default=10, show_default=True, type=click.IntRange(0), help="How many differences."
)
@OUTPUT
def replay(*, file: Path, config_file: str, feature_gates: str, shown: int, output: str) -> None:
    """Make the decisions of a recording again.

    FILE is of `berth scheduler --record-to DIR`. With the recorded configuration, which is in the file, all
    that was decided and written comes out again; the replay ends at the first thing that does not. With
    --config another configuration is asked in each situation as it was recorded: which decisions it would
    take otherwise, and what both nodes score.

    Or FILE is of `berth record DIR`, or of kube-scheduler-simulator's recorder: then the configuration, by
    default kube-scheduler's own defaults, is asked about each pod at the moment at which it was bound there.

    Exits with 0 where everything is the same, with 1 where something is not, and with 2 where an input or
    the configuration is wrong.
    """
    from berth.config.errors import ConfigError  # noqa: PLC0415 (quick start)
    from berth.observer.replay import replay_observed  # noqa: PLC0415 (quick start)
    from berth.observer.text import observed_lines  # noqa: PLC0415 (quick start)
    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (quick start)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.recorded_events import is_of_cluster  # noqa: PLC0415 (quick start)
    from berth.simulation.recordings.replay import replay as replayed  # noqa: PLC0415 (quick start)
    from berth.simulation.text import replay_lines  # noqa: PLC0415 (quick start)

    # What the scheduler logged then is no news now.
    logging.getLogger("berth").addHandler(logging.NullHandler())
    named = "" if config_file == "default" else config_file
    try:
        if is_of_cluster(file):
            seen = replay_observed(file, read_scheduler(named, feature_gates).loaded, shown=shown)
            show(seen, output, observed_lines(seen))
            different = seen.different
        else:
            if feature_gates and not config_file:
                fail("--feature-gates has no meaning here: add --config, or leave it to the recording")
            loaded = read_scheduler(named, feature_gates).loaded if config_file else None
            found = replayed(file, loaded, shown=shown)
            show(found, output, replay_lines(found))
            different = found.different
    except (SimulationError, EventRegistrationError, ConfigError) as error:
        fail(error)
    sys.exit(EXIT_DIFFERENT if different else 0)


def _objects(
    config_file: str, cluster: "ClusterInput", inputs: tuple[str, ...]
) -> "RenderedScheduler | None":
    """The Scheduler of the input, where no configuration is given; the user is shown which."""
    from berth.simulation.plugins.plugin_settings import scheduler_among  # noqa: PLC0415 (quick start)

    found = None if config_file else scheduler_among(cluster.others, ", ".join(inputs))
    if found is not None:
        click.echo(f"the scheduler is that of {found.where}", err=True)
    return found
