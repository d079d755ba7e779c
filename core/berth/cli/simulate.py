"""`berth simulate`: what a scheduler would do, without a cluster to do it to."""

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from berth.cli.failing import fail
from berth.cli.simulated_scheduler import CONFIG, FEATURE_GATES, read_scheduler
from berth.cli.simulation_serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from berth.simulation.compare import Comparison
    from berth.simulation.inputs import ClusterInput
    from berth.simulation.plugin_settings import SchedulerSettings
    from berth.simulation.scheduler_objects import RenderedScheduler

EXIT_DIFFERENT = 1
EXIT_PENDING = 3
FORMATS = click.Choice(["text", "json", "yaml"])


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


simulate.add_command(serve)


def configured(command: Any) -> Any:
    """Give a command the options that say which scheduler is simulated, and how its outcome is printed."""
    listed = click.option(
        "--plugins",
        "plugins_file",
        default="",
        metavar="FILE",
        help="A PluginList, as for the scheduler; an entry may have a `command` that starts it. By default "
        "the list behind the configuration.",
    )
    ways = click.option(
        "--plugin",
        "ways",
        multiple=True,
        metavar="NAME=COMMAND",
        help="Start that plugin by this command, or reach it at NAME=ADDRESS, whatever its entry or "
        "SchedulerPlugin says. Repeatable.",
    )
    return CONFIG(listed(ways(configured_but_for_file(command))))


def configured_but_for_file(command: Any) -> Any:
    """The same options for a command that takes configurations as arguments."""
    options = (
        FEATURE_GATES,
        click.option("--seed", default=0, show_default=True, help="Of the choice between equal nodes."),
        click.option(
            "--what-if",
            "what_if",
            multiple=True,
            metavar="CHANGE",
            help="Change the cluster first, such as `add-node n0 x10` or `drain zone=a`; or a file with a "
            "change a line. `after SECONDS` before it makes it in the midst. Repeatable.",
        ),
        click.option("-o", "--output", type=FORMATS, default="text", show_default=True),
    )
    for option in reversed(options):
        command = option(command)
    return command


@simulate.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@configured
@click.option("--until", "most_seconds", type=click.FloatRange(0), help="End after so many virtual seconds.")
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
    most_seconds: float | None,
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
    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (see above)
    from berth.simulation.changes import changed, read_changes  # noqa: PLC0415 (see above)
    from berth.simulation.engine import simulate as simulated  # noqa: PLC0415 (see above)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (see above)
    from berth.simulation.inputs import read_cluster  # noqa: PLC0415 (see above)
    from berth.simulation.options import Options  # noqa: PLC0415 (see above)
    from berth.simulation.text import outcome_lines  # noqa: PLC0415 (see above)

    try:
        changes, read = read_changes(what_if), read_cluster(inputs, seed=seed)
        settings = read_scheduler(
            config_file, feature_gates, plugins_file, ways=ways, objects=_objects(config_file, read, inputs)
        )
        cluster = changed(read, changes)
        options = Options(*settings, seed=seed, changes=changes)
        if most_seconds is not None:
            options = replace(options, most_seconds=most_seconds)
        outcome = simulated(cluster, options)
    except (SimulationError, EventRegistrationError) as error:
        fail(error)
    show(outcome, output, outcome_lines(outcome))
    sys.exit(EXIT_PENDING if outcome.pending else 0)


@simulate.command()
@click.argument("pod_file", metavar="POD", type=click.Path(path_type=Path))
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@configured
@click.option("--most", default=1_000_000, show_default=True, type=click.IntRange(1, 1_000_000))
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
    most: int,
    labels: tuple[str, ...],
) -> None:
    """Say how many more copies of the pod in the file POD fit into a cluster.

    Several pods in POD are placed in turn, by their annotations simulation.berth.dev/weight. Pods of the
    cluster that have no node are left out, and no pod is preempted.

    Exits with 0 where --most copies fit, with 3 where one did not, and with 2 where an input or the
    configuration is wrong.
    """
    from berth.simulation.changes import changed, read_changes  # noqa: PLC0415 (quick start)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start)
    from berth.simulation.fill import POOLS  # noqa: PLC0415 (quick start)
    from berth.simulation.fill import fill as filled  # noqa: PLC0415 (quick start)
    from berth.simulation.inputs import read_cluster, read_pods  # noqa: PLC0415 (quick start)
    from berth.simulation.options import Options  # noqa: PLC0415 (quick start)
    from berth.simulation.text import fill_lines  # noqa: PLC0415 (quick start)

    try:
        changes, read = read_changes(what_if), read_cluster(inputs, seed=seed)
        settings = read_scheduler(
            config_file, feature_gates, plugins_file, ways=ways, objects=_objects(config_file, read, inputs)
        )
        cluster = changed(read, changes)
        pods, options = read_pods(pod_file, cluster), Options(*settings, seed=seed, changes=changes)
        found = filled(cluster, pods, options, most=most, labels=labels or POOLS)
    except SimulationError as error:
        fail(error)
    show(found, output, fill_lines(found))
    sys.exit(EXIT_PENDING if found.stopped_by else 0)


@simulate.command()
@click.argument("configurations", nargs=-1, required=True, metavar="CONFIG...")
@click.option(
    "--input", "inputs", multiple=True, required=True, metavar="INPUT", help="As for `run`. Repeatable."
)
@configured_but_for_file
@click.option(
    "--explain",
    "explained",
    default=10,
    show_default=True,
    type=click.IntRange(0, 1000),
    help="How many pods that two configurations put on different nodes are explained.",
)
@click.option(
    "--sweep",
    "axes",
    multiple=True,
    metavar="AXIS",
    help="Simulate every combination: seed=0..9, or a Score plugin's weights as NodeResourcesFit=1,5. "
    "Repeatable.",
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the runs of a sweep in this file; those in it are not repeated.",
)
@click.option(
    "--jobs", default=2, show_default=True, type=click.IntRange(1), help="Runs of a sweep at a time."
)
@click.option(
    "--dask", metavar="ADDRESS", help="Do a sweep's runs on this Dask cluster, which has the same files."
)
@click.option(
    "--plot", "plot_to", metavar="FILE", help="Plot the rows to a PNG file, or to the terminal (-)."
)
def compare(
    *,
    configurations: tuple[str, ...],
    inputs: tuple[str, ...],
    feature_gates: str,
    seed: int,
    what_if: tuple[str, ...],
    output: str,
    explained: int,
    axes: tuple[str, ...],
    results: Path | None,
    jobs: int,
    dask: str | None,
    plot_to: str | None,
) -> None:
    """Simulate configurations side by side on one input.

    CONFIG is a file, or `default` for kube-scheduler's own defaults; CONFIG,LIST takes its plugins from the
    PluginList in the file LIST. Exits with 0, or with 2 where an input
    or a configuration is wrong.
    """
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start)
    from berth.simulation.plots import plot  # noqa: PLC0415 (quick start)
    from berth.simulation.plugin_settings import files_of  # noqa: PLC0415 (quick start)
    from berth.simulation.sweep import (  # noqa: PLC0415 (quick start)
        Subject,
        in_processes,
        on_dask,
        runs_of,
        sweep,
    )
    from berth.simulation.text import comparison_lines, summary_lines  # noqa: PLC0415 (quick start)

    if len(set(configurations)) != len(configurations):
        fail("CONFIG: one is given twice; give each configuration once")
    if not axes and (results or dask):
        fail("--results and --dask have no meaning here: add --sweep")
    files = {}
    for name in configurations:
        config, listed = files_of(name)
        files[name] = read_scheduler(config, feature_gates, listed)
    if axes and (dask or jobs > 1):
        _refuse_shared(files.values())
    try:
        if axes:
            subject, runs = Subject(inputs, feature_gates, what_if), runs_of(configurations, axes, seed)
            swept = sweep(subject, runs, results, in_processes(jobs) if dask is None else on_dask(dask))
            show(swept, output, summary_lines(swept.runs))
            summaries = swept.runs
        else:
            found = _compared(files, inputs, what_if, seed, explained)
            show(found, output, comparison_lines(found))
            summaries = found.variants
        if plot_to is not None:
            plot(summaries, plot_to)
    except SimulationError as error:
        fail(error)


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
@click.option("-o", "--output", type=FORMATS, default="text", show_default=True)
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
    from berth.observer.reading import is_of_cluster  # noqa: PLC0415 (quick start)
    from berth.observer.replay import replay_observed  # noqa: PLC0415 (quick start)
    from berth.observer.text import observed_lines  # noqa: PLC0415 (quick start)
    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (quick start)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start)
    from berth.simulation.replay import replay as replayed  # noqa: PLC0415 (quick start)
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
    from berth.simulation.plugin_settings import scheduler_among  # noqa: PLC0415 (quick start)

    found = None if config_file else scheduler_among(cluster.others, ", ".join(inputs))
    if found is not None:
        click.echo(f"the scheduler is that of {found.where}", err=True)
    return found


def _refuse_shared(schedulers: "Iterable[SchedulerSettings]") -> None:
    """Refuse a plugin that several runs at a time would be connected to: each shows it another cluster."""
    for _, plugins in schedulers:
        for spec in plugins.sidecars:
            if not spec.command:
                said = "runs side by side would share it; add --jobs 1, or give the entry a command"
                fail(f"{plugins.place(spec, 'address')}: {said}")


def _compared(
    files: "Mapping[str, SchedulerSettings]",
    inputs: tuple[str, ...],
    what_if: tuple[str, ...],
    seed: int,
    explained: int,
) -> "Comparison":
    from berth.simulation.changes import changed, read_changes  # noqa: PLC0415 (quick start)
    from berth.simulation.compare import compare as compared  # noqa: PLC0415 (quick start)
    from berth.simulation.inputs import read_cluster  # noqa: PLC0415 (quick start)
    from berth.simulation.options import Options  # noqa: PLC0415 (quick start)

    changes = read_changes(what_if)
    variants = {name: Options(*settings, seed=seed, changes=changes) for name, settings in files.items()}
    return compared(changed(read_cluster(inputs, seed=seed), changes), variants, explained=explained)


def show(result: Any, output: str, lines: "Iterable[str]") -> None:
    """Print a result: as text, or whole as JSON or YAML."""
    import msgspec  # noqa: PLC0415 (quick start)

    from berth.config.dump import yaml_text  # noqa: PLC0415 (quick start)

    if output == "text":
        for line in lines:
            click.echo(line)
    elif output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(result)))
    else:
        click.echo(yaml_text(msgspec.to_builtins(result)), nl=False)
