"""`berth config`: check a KubeSchedulerConfiguration file, and show what it amounts to."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from berth.config import LoadedConfig, ResolvedProfile
    from berth.config.out_of_tree.sidecars import SidecarSpec

_FILE = click.argument("file", type=click.Path(path_type=Path))
_PLUGINS = click.option(
    "--plugins",
    type=click.Path(path_type=Path),
    help="The list of out-of-tree plugins; a document in FILE itself will do as well.",
)
_GATES = click.option(
    "--feature-gates", multiple=True, metavar="A=true,B=false", help="As for the scheduler."
)


@click.group()
def config() -> None:
    """Check and explain scheduler configuration files."""


@config.command()
@_FILE
@_PLUGINS
@_GATES
def validate(file: Path, plugins: Path | None, feature_gates: tuple[str, ...]) -> None:
    """Say whether a scheduler starts with FILE; exit status 2 and a line for each error if not."""
    loaded = _load(file, plugins, feature_gates)
    names = ", ".join(profile.scheduler_name for profile in loaded.profiles)
    click.echo(f"{file}: valid; profiles: {names}")


@config.command()
@_FILE
@_PLUGINS
@_GATES
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def resolve(file: Path, plugins: Path | None, feature_gates: tuple[str, ...], output: str) -> None:
    """Show which plugins run at which extension point, in order and with their weights."""
    loaded = _load(file, plugins, feature_gates)
    if output == "json":
        points = {
            profile.scheduler_name: {point.value: named for point, named in profile.points.items()}
            for profile in loaded.profiles
        }
        click.echo(json.dumps(points, indent=2))
    else:
        click.echo("\n\n".join(_table(profile) for profile in loaded.profiles))


@config.command("to-crd")
@_FILE
@_PLUGINS
@_GATES
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

    _load(file, plugins, feature_gates)
    pairs = dict(one.partition("=")[::2] for one in images)
    try:
        given = _read(file), _sidecars(file, plugins)
        found = converted(*given, name=name, images=pairs, gates=feature_gates)
    except PlanError as error:
        _fail(*str(error).splitlines())
    for note in found.notes:
        click.echo(f"Warning: {note}", err=True)
    click.echo("---\n".join(map(yaml_text, found.documents)), nl=False)


def _load(file: Path, plugins: Path | None, feature_gates: tuple[str, ...]) -> "LoadedConfig":
    # Imported here so that `berth --help` stays quick.
    from berth.config import ConfigError, load, parse_feature_gates  # noqa: PLC0415 (quick start)
    from berth.config.complaints import complaint_lines  # noqa: PLC0415 (quick start)
    from berth.config.out_of_tree.sidecars import catalogue_of  # noqa: PLC0415 (quick start)
    from berth.config.shards import check_shards, shards_beside  # noqa: PLC0415 (quick start)

    source = _read(file)
    try:
        gates = parse_feature_gates(feature_gates)
        loaded = load(source, gates=gates, out_of_tree=catalogue_of(_sidecars(file, plugins)))
        check_shards(shards_beside(source, str(file)), loaded, str(file))
    except ConfigError as error:
        _fail(*complaint_lines(error, str(file)))
    return loaded


def _sidecars(file: Path, plugins: Path | None) -> "tuple[SidecarSpec, ...]":
    from berth.config.out_of_tree.plugin_list import list_beside, parse_plugin_list  # noqa: PLC0415 (quick start)

    return (
        parse_plugin_list(_read(plugins), str(plugins))
        if plugins
        else list_beside(_read(file), str(file)).plugins
    )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        _fail(f"{file}: {error.strerror or error}")


def _fail(*lines: str) -> NoReturn:
    for line in lines:
        click.echo(f"Error: {line}", err=True)
    raise SystemExit(2)


def _table(profile: "ResolvedProfile") -> str:
    lines = [f"profile {profile.scheduler_name}"]
    for point, named in profile.points.items():
        plugins = ", ".join(f"{name}={weight}" if weight else name for name, weight in named)
        lines.append(f"  {point.value:<18} {plugins or '-'}")
    return "\n".join(lines)
