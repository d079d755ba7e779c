"""The images of a release: a recipe each, and what it packs, made of this checkout."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from berth_images.build import Built, build
from berth_images.platforms import Platform
from berth_images.recipe import read
from tests.go_toolchain import ROOT, run_go
from tests.release.dist import BUILT, KINDS, UV, built, kept, run
from tests.release.version import version

RECIPES = {
    path.stem if path.parent.name == "images" else path.parent.name: path
    for pattern in ("core/images/*.toml", "out-of-tree-plugins/*/image.toml")
    for path in sorted(ROOT.glob(pattern))
}
"""By the image's name. Plugins that need Java or Node have image files alone."""
_OF_GO = "plugin-{architecture}"


def images(folder: Path, names: Iterable[str], platforms: Sequence[Platform]) -> list[Built]:
    """Build images of this checkout into a folder."""
    built("wheels")
    return [_image(folder, RECIPES[name], platforms) for name in names]


def image(name: str, platform: Platform) -> Path:
    """Return the folder of an image's layout, as its sources are now; tests of several processes share it.

    Raises: ImageError where Debian's packages cannot be had.
    """
    built("wheels")
    sources = (*KINDS["wheels"][1], *KINDS["go"][1], "uv.lock", "tests/release", "out-of-tree-plugins/*/*.go")
    place = f"images/{platform.architecture}"
    stamp = f"image-{name}-{platform.architecture}"
    kept(stamp, lambda folder: _image(folder / place, RECIPES[name], [platform]), sources)
    return BUILT / place / name


def _image(folder: Path, recipe: Path, platforms: Sequence[Platform]) -> Built:
    """Build an image; the wheels of this checkout have been built."""
    what = read(recipe)
    with TemporaryDirectory() as place:
        inputs = Path(place)
        if what.lock:
            (inputs / what.lock).write_text(locked(what.programs[0]), encoding="utf-8")
        if _OF_GO in {each.source for each in what.files}:
            for platform in platforms:
                _go_program(recipe.parent, inputs, platform)
        return build(recipe, folder, version(), platforms, inputs)


def locked(distribution: str) -> str:
    """A distribution and what it requires, as a pylock.toml: uv.lock's packages and the built wheels."""
    words = ("--frozen", "--no-dev", "--no-editable", "--no-header", "--format", "pylock.toml")
    text = run([UV, "export", "--quiet", *words, "--package", distribution])
    return re.sub(r'^name = "(.+)"\ndirectory = .+$', _of_this_checkout, text, flags=re.MULTILINE)


def _of_this_checkout(found: re.Match[str]) -> str:
    wheel = BUILT / f"{found[1].replace('-', '_')}-{version()}-py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    file = f'{{ path = "{wheel}", hashes = {{ sha256 = "{digest}" }} }}'
    return f'name = "{found[1]}"\nversion = "{version()}"\nwheels = [{file}]'


def _go_program(source: Path, inputs: Path, platform: Platform) -> None:
    program = inputs / _OF_GO.format(architecture=platform.architecture)
    words = ("build", "-ldflags=-s -w", "-o", str(program), ".")
    done = run_go(*words, folder=source, capture=True, GOOS="linux", GOARCH=platform.architecture)
    if done.returncode:
        raise RuntimeError(f"go build of {source}: {done.stdout}")
