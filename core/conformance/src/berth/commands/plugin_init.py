"""`berth plugin init`: a project for a plugin of one's own."""

from pathlib import Path

import click

from berth.cli.failing import fail

LANGUAGES = ("python", "go", "typescript", "rust", "java")


@click.command()
@click.argument("name")
@click.option("--language", type=click.Choice(LANGUAGES), default="python", show_default=True)
@click.option("--directory", type=click.Path(path_type=Path), help="Where it is made.  [default: ./NAME]")
@click.option(
    "--sdk",
    type=click.Path(path_type=Path),
    help="The SDK, copied from this machine instead of its registry, for as long as none is published "
    "there: for Python, Go and Rust the folder plugin-sdk/LANGUAGE of a checkout; of what `make dist` builds "
    "the .tgz for TypeScript and the folder maven for Java.",
)
def init(name: str, language: str, directory: Path | None, sdk: Path | None) -> None:
    """Make a project for the plugin NAME: source, tests, image file, and a SchedulerPlugin.

    It needs nothing of Berth's repository. Its README.md says how it is built, tested, verified and attached.
    """
    from berth.conformance.project import LANGUAGES as KNOWN  # noqa: PLC0415 (a distribution of its own)
    from berth.conformance.project import ProjectError, create  # noqa: PLC0415 (a distribution of its own)

    folder = directory or Path(name)
    try:
        create(name, language, folder, sdk)
    except (OSError, ProjectError) as error:
        fail(error)
    click.echo(f"{folder} made: see {folder / 'README.md'}")
    if sdk is None:
        click.echo(
            "no registry has the SDK yet: to build the project, remove it and make it anew with --sdk and "
            f"{KNOWN[language].sdk_is}"
        )
