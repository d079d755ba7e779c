"""`berth config`: check a KubeSchedulerConfiguration file, and show what it amounts to."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from berth.cli.verbs import Verbs

if TYPE_CHECKING:
    from berth.config import LoadedConfig, ResolvedProfile
    from berth.config.out_of_tree.sidecars import SidecarSpec

FILE = click.argument("file", type=click.Path(path_type=Path))
PLUGINS = click.option(
    "--plugins",
    type=click.Path(path_type=Path),
    help="The list of out-of-tree plugins; a document in FILE itself will do as well.",
)
GATES = click.option("--feature-gates", multiple=True, metavar="A=true,B=false", help="As for the scheduler.")


@click.group(cls=Verbs, elsewhere={"to-crd": "berth.commands.to_crd:to_crd"})
def config() -> None:
    """Check and explain scheduler configuration files."""


@config.command()
@FILE
@PLUGINS
@GATES
def validate(file: Path, plugins: Path | None, feature_gates: tuple[str, ...]) -> None:
    """Say whether a scheduler starts with FILE; exit status 2 and a line for each error if not."""
    loaded = load_file(file, plugins, feature_gates)
    names = ", ".join(profile.scheduler_name for profile in loaded.profiles)
    click.echo(f"{file}: valid; profiles: {names}")


@config.command()
@FILE
@PLUGINS
@GATES
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def resolve(file: Path, plugins: Path | None, feature_gates: tuple[str, ...], output: str) -> None:
    """Show which plugins run at which extension point, in order and with their weights."""
    loaded = load_file(file, plugins, feature_gates)
    if output == "json":
        points = {
            profile.scheduler_name: {point.value: named for point, named in profile.points.items()}
            for profile in loaded.profiles
        }
        click.echo(json.dumps(points, indent=2))
    else:
        click.echo("\n\n".join(_table(profile) for profile in loaded.profiles))


def load_file(file: Path, plugins: Path | None, feature_gates: tuple[str, ...]) -> "LoadedConfig":
    """Read and check a configuration; ends the program with a line for each error."""
    # Imported here so that `berth --help` stays quick.
    from berth.config import ConfigError, load, parse_feature_gates  # noqa: PLC0415 (quick start)
    from berth.config.complaints import complaint_lines  # noqa: PLC0415 (quick start)
    from berth.config.out_of_tree.sidecars import catalogue_of  # noqa: PLC0415 (quick start)
    from berth.config.shards import check_shards, shards_beside  # noqa: PLC0415 (quick start)

    source = read_file(file)
    try:
        gates = parse_feature_gates(feature_gates)
        loaded = load(source, gates=gates, out_of_tree=catalogue_of(listed_sidecars(file, plugins)))
        check_shards(shards_beside(source, str(file)), loaded, str(file))
    except ConfigError as error:
        fail_with(*complaint_lines(error, str(file)))
    return loaded


def listed_sidecars(file: Path, plugins: Path | None) -> "tuple[SidecarSpec, ...]":
    """The plugins of the list, or of the list that stands in FILE itself."""
    from berth.config.out_of_tree.plugin_list import list_beside, parse_plugin_list  # noqa: PLC0415 (quick start)

    return (
        parse_plugin_list(read_file(plugins), str(plugins))
        if plugins
        else list_beside(read_file(file), str(file)).plugins
    )


def read_file(file: Path) -> bytes:
    """A file's bytes; ends the program where it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        fail_with(f"{file}: {error.strerror or error}")


def fail_with(*lines: str) -> NoReturn:
    """End the program with a line for each error."""
    for line in lines:
        click.echo(f"Error: {line}", err=True)
    raise SystemExit(2)


def _table(profile: "ResolvedProfile") -> str:
    lines = [f"profile {profile.scheduler_name}"]
    for point, named in profile.points.items():
        plugins = ", ".join(f"{name}={weight}" if weight else name for name, weight in named)
        lines.append(f"  {point.value:<18} {plugins or '-'}")
    return "\n".join(lines)
