"""`berth-images`: build images, unpack them, and lock the Debian packages that they are built on."""

import sys
from pathlib import Path

import click
import msgspec

from berth_images.bases import bases
from berth_images.build import Built, build
from berth_images.errors import ImageError
from berth_images.layout import unpack
from berth_images.locking import locked
from berth_images.platforms import PLATFORMS, by_name, of_this_machine

_MEBIBYTE = 1 << 20


class Commands(click.Group):
    """Commands whose errors end the program with a sentence."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (ImageError, OSError) as error:
            sys.exit(f"Error: {error}")


@click.group(cls=Commands)
@click.version_option(package_name="berth-images", prog_name="berth-images")
def main() -> None:
    """Build container images as OCI layouts, without a daemon and without root."""


@main.command("build")
@click.argument("recipes", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("images"), show_default=True
)
@click.option("--version", "number", required=True, help="The tag, and the label of that name.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    default=[each.name for each in PLATFORMS],
    show_default=True,
    help="May be given more than once.",
)
@click.option(
    "--inputs",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="The folder that a recipe's files are relative to, by default that of the recipe.",
)
def build_command(
    recipes: tuple[Path, ...], output: Path, number: str, platforms: tuple[str, ...], inputs: Path | None
) -> None:
    """Build the image of each recipe into OUTPUT/NAME, with its SBOM and provenance beside it."""
    chosen = [by_name(each) for each in platforms]
    for recipe in recipes:
        click.echo(summary(build(recipe, output, number, chosen, inputs)))


@main.command("unpack")
@click.argument("layout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--platform", help="By default that of this machine.")
def unpack_command(layout: Path, folder: Path, platform: str | None) -> None:
    """Write the root file system of LAYOUT's image to FOLDER, which is made."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ImageError(f"{folder}: there is one already; name a folder that is not") from None
    unpack(layout, by_name(platform) if platform else of_this_machine(), folder)


@main.command("lock")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def lock_command(file: Path) -> None:
    """Write the newest Debian packages of the bases to FILE, checked by the archive's signature."""
    found = locked(bases())
    file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    count = sum(map(len, found.packages.values()))
    click.echo(f"{file}: {count} packages of Debian {found.release}, {found.suite}")


def summary(built: Built) -> str:
    """Return a line for each platform: its size to fetch and on a node."""
    lines = [f"{built.name} {built.digest}"]
    for image in built.images:
        fetched, kept = image.size / _MEBIBYTE, image.unpacked_size / _MEBIBYTE
        lines.append(f"  {image.platform.name}: {fetched:.1f} MiB, unpacked {kept:.1f} MiB")
    return "\n".join(lines)
