"""`berth config to-crd`: a configuration file as resources for the operator."""

from pathlib import Path

import click

from berth.cli.config import FILE, GATES, PLUGINS, fail_with, listed_sidecars, load_file, read_file


@click.command("to-crd")
@FILE
@PLUGINS
@GATES
@click.option("--name", default="main", show_default=True, help="What the Scheduler is called.")
@click.option(
    "--image", "images", multiple=True, metavar="PLUGIN=IMAGE", help="A sidecar's image. Repeatable."
)
def to_crd(
    file: Path, plugins: Path | None, feature_gates: tuple[str, ...], name: str, images: tuple[str, ...]
) -> None:
    """Print FILE as a Scheduler resource for the operator, with a SchedulerPlugin for each plugin."""
    from berth.config.dump import yaml_text  # noqa: PLC0415 (quick start)
    from berth.operator.errors import PlanError  # noqa: PLC0415 (quick start)
    from berth.operator.from_configuration import converted  # noqa: PLC0415 (quick start)

    load_file(file, plugins, feature_gates)
    pairs = dict(one.partition("=")[::2] for one in images)
    try:
        given = read_file(file), listed_sidecars(file, plugins)
        found = converted(*given, name=name, images=pairs, gates=feature_gates)
    except PlanError as error:
        fail_with(*str(error).splitlines())
    for note in found.notes:
        click.echo(f"Warning: {note}", err=True)
    click.echo("---\n".join(map(yaml_text, found.documents)), nl=False)
