"""`berth simulate compare`: configurations side by side on one input, and sweeps over weights and seeds."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from berth.cli.failing import fail
from berth.commands.simulated_scheduler import RELEASE, read_scheduler
from berth.commands.simulating import QUEUES_EVERY, configured_but_for_file, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from berth.simulation.comparing.compare import Variant
    from berth.simulation.comparing.sweep import SweepInput, SweepRun, Work
    from berth.simulation.plugins.plugin_settings import SchedulerSettings
    from berth.simulation.reading.inputs import ClusterInput
    from berth.simulation.running.outcome import SimulationSummary
    from berth.simulation.what_if.changes import ClusterChange


@click.command()
@click.argument("configurations", nargs=-1, required=True, metavar="CONFIG...")
@click.option(
    "--input", "inputs", multiple=True, required=True, metavar="INPUT", help="As for `run`. Repeatable."
)
@configured_but_for_file
@RELEASE
@QUEUES_EVERY
@click.option(
    "--objects",
    "objects",
    multiple=True,
    metavar="FILE",
    help="Each CONFIG with the objects of FILE, such as Queues, in place of the input's of their kinds. "
    "Repeatable, for files side by side.",
)
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
    plugins_file: str,
    ways: tuple[str, ...],
    feature_gates: str,
    seed: int,
    what_if: tuple[str, ...],
    output: str,
    release: str,
    queues_every: float,
    objects: tuple[str, ...],
    explained: int,
    axes: tuple[str, ...],
    results: Path | None,
    jobs: int,
    dask: str | None,
    plot_to: str | None,
) -> None:
    """Simulate configurations side by side on one input.

    CONFIG is a file, or `default` for kube-scheduler's own defaults; CONFIG,LIST takes its plugins from the
    PluginList in the file LIST, in place of --plugins. --plugin is for every CONFIG that uses the plugin.

    Exits with 0, or with 2 where an input or a configuration is wrong.
    """
    from berth.simulation.comparing.compare import compare as compared  # noqa: PLC0415 (quick start)
    from berth.simulation.comparing.plots import plot  # noqa: PLC0415 (quick start)
    from berth.simulation.comparing.sweep import SweepInput, in_processes, on_dask, runs_of  # noqa: PLC0415 (quick start)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (quick start)
    from berth.simulation.plugins.plugin_settings import check_ways_used, files_of  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.inputs import read_cluster  # noqa: PLC0415 (quick start)
    from berth.simulation.text import comparison_lines  # noqa: PLC0415 (quick start)
    from berth.simulation.what_if.changes import changed, read_changes  # noqa: PLC0415 (quick start)

    if len(set(configurations)) != len(configurations):
        fail("CONFIG: one is given twice; give each configuration once")
    if not axes and (results or dask):
        fail("--results and --dask have no meaning here: add --sweep")
    if axes and (objects or queues_every):
        fail("--objects and --queues-every have no meaning with --sweep: leave one of them out")
    if len(set(objects)) != len(objects):
        fail("--objects: one is given twice; give each file once")
    schedulers = {}
    for name in configurations:
        config, listed = files_of(name, plugins_file)
        schedulers[name] = read_scheduler(
            config, feature_gates, listed, ways=ways, shared=True, release=release
        )
    try:
        check_ways_used(ways, schedulers)
        if axes:
            if dask or jobs > 1:
                _refuse_shared(schedulers.values())
            subject = SweepInput(inputs, feature_gates, what_if, plugins_file, ways, release)
            work = in_processes(jobs) if dask is None else on_dask(dask)
            summaries = _swept(subject, runs_of(configurations, axes, seed), results, work, output)
        else:
            changes = read_changes(what_if)
            cluster = changed(read_cluster(inputs, seed=seed), changes)
            options = {"seed": seed, "queues_every": queues_every}
            found = compared(_variants(schedulers, cluster, objects, changes, **options), explained=explained)
            show(found, output, comparison_lines(found))
            summaries = found.variants
        if plot_to is not None:
            plot(summaries, plot_to)
    except SimulationError as error:
        fail(error)


def _swept(
    subject: "SweepInput", runs: "Sequence[SweepRun]", results: Path | None, work: "Work", output: str
) -> "list[SimulationSummary]":
    from berth.simulation.comparing.sweep import sweep  # noqa: PLC0415 (quick start)
    from berth.simulation.text import summary_lines  # noqa: PLC0415 (quick start)

    done = sweep(subject, runs, results, work)
    show(done, output, summary_lines(done.runs))
    return done.runs


def _refuse_shared(schedulers: "Iterable[SchedulerSettings]") -> None:
    """Refuse a plugin that several runs at a time would be connected to: each shows it another cluster."""
    for _, plugins in schedulers:
        for spec in plugins.sidecars:
            if not spec.command:
                said = "runs side by side would share it; add --jobs 1, or give a command that starts it"
                fail(f"{plugins.place(spec, 'address')}: {said}")


def _variants(
    schedulers: "Mapping[str, SchedulerSettings]",
    cluster: "ClusterInput",
    objects: tuple[str, ...],
    changes: "Sequence[ClusterChange]",
    **options: Any,
) -> "dict[str, Variant]":
    """Each configuration with each file of objects, or with the input's own; `options` are of all."""
    from berth.simulation.comparing.compare import Variant  # noqa: PLC0415 (quick start)
    from berth.simulation.reading.inputs import with_objects_of  # noqa: PLC0415 (quick start)
    from berth.simulation.running.options import SimulationOptions  # noqa: PLC0415 (quick start)

    clusters = {file: with_objects_of(cluster, file) for file in objects} or {"": cluster}
    return {
        (file if file and len(schedulers) == 1 else f"{name} {file}".rstrip()): Variant(
            shown, SimulationOptions(*settings, changes=changes, **options)
        )
        for name, settings in schedulers.items()
        for file, shown in clusters.items()
    }
