"""`python -m tests.release`: build the files of a release, check that it is whole, set its version."""

import shutil
import sys
from pathlib import Path

import click

from berth_images.cli import summary
from berth_images.errors import ImageError
from berth_images.platforms import PLATFORMS, by_name
from tests.release.changelog import section
from tests.release.dist import checksums
from tests.release.dist import dist as build
from tests.release.images import RECIPES
from tests.release.images import images as build_images
from tests.release.version import set_version, unlike
from tests.release.version import version as current


@click.group()
def main() -> None:
    """Make a release of Berth: docs/releasing.md."""


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path("dist"))
def dist(folder: Path) -> None:
    """Build everything that a release has into FOLDER, which is emptied first, with SHA256SUMS."""
    shutil.rmtree(folder, ignore_errors=True)
    lacking = build(folder.absolute())
    (folder / "SHA256SUMS").write_text(checksums(folder), encoding="utf-8")
    for sentence in lacking:
        click.echo(f"Warning: {sentence}", err=True)
    click.echo(f"{folder}: Berth {current()}, {sum(path.is_file() for path in folder.rglob('*'))} files")


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path("dist/images"))
@click.option("--image", "names", multiple=True, type=click.Choice(list(RECIPES)), default=list(RECIPES))
@click.option("--platform", "platforms", multiple=True, default=[each.name for each in PLATFORMS])
def images(folder: Path, names: tuple[str, ...], platforms: tuple[str, ...]) -> None:
    """Build each image into FOLDER/NAME, an OCI layout, with its SBOMs and provenance beside it."""
    try:
        for built in build_images(folder, names, [by_name(each) for each in platforms]):
            click.echo(summary(built))
    except ImageError as error:
        sys.exit(f"Error: {error}")


@main.command()
@click.argument("number", required=False)
def version(number: str | None) -> None:
    """Print the version, or write NUMBER to every place that has it."""
    if number is None:
        click.echo(current())
        return
    try:
        changed = set_version(number)
    except ValueError as error:
        sys.exit(f"Error: {error}")
    click.echo(f"{number} in {len(changed)} files")


@main.command()
def check() -> None:
    """Say what stands against a release of this checkout; exit status 1 if anything does."""
    problems = [*unlike(), *([] if section(current()) else [f"CHANGELOG.md has no section {current()}"])]
    for problem in problems:
        click.echo(f"release-check: {problem}", err=True)
    sys.exit(1 if problems else 0)


@main.command()
def notes() -> None:
    """Print what CHANGELOG.md says of the version."""
    text = section(current())
    if not text:
        sys.exit(f"Error: CHANGELOG.md has no section {current()}")
    click.echo(text)


if __name__ == "__main__":
    main(prog_name="python -m tests.release")
