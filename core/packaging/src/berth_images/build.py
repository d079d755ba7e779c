"""From a recipe to a layout: base layers, locked packages, the image's own files, and documents.

OUTPUT/NAME/                         the layout
OUTPUT/NAME.ARCHITECTURE.spdx.json   its bill of materials
OUTPUT/NAME.provenance.json          what it was built of
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from berth_images.bases import CERTIFICATES, USER, base_layers
from berth_images.bytecode import add_bytecode
from berth_images.debian import Package, merged
from berth_images.documents import bill_of_materials, inputs_of, provenance
from berth_images.errors import ImageError
from berth_images.layout import CREATED, Image, ImageLayout, Json, Layer, Packed, pack
from berth_images.platforms import PLATFORMS, Platform
from berth_images.python_packages import Installed, Wheel, installed
from berth_images.recipe import Recipe, read
from berth_images.tree import File, Tree

_PATH = "/usr/local/bin:/usr/bin:/bin"


class Built(msgspec.Struct, frozen=True):
    """An image that was built: its name, the digest of its index, and the images of its platforms."""

    name: str
    digest: str
    images: tuple[Image, ...]


class BuildSource(msgspec.Struct, frozen=True):
    """A recipe, where it stands, and the folder that its files are relative to."""

    recipe: Recipe
    path: Path
    inputs: Path


def build(
    path: Path, output: Path, version: str, platforms: Sequence[Platform], inputs: Path | None = None
) -> Built:
    """Build the image of a recipe into OUTPUT, in place of one of its name.

    Raises: ImageError.
    """
    recipe = read(path)
    source = BuildSource(recipe, path, inputs or path.parent)
    output.mkdir(parents=True, exist_ok=True)
    # A build that fails leaves what was there.
    with TemporaryDirectory(dir=output, prefix=".") as place:
        layout = ImageLayout(Path(place) / "layout")
        parts = [_Part(source, layout, version, platform) for platform in platforms]
        images = tuple(part.image for part in parts)
        index = layout.finish(images, recipe.name, version, labels(recipe, version))
        shutil.rmtree(output / recipe.short_name, ignore_errors=True)
        layout.folder.rename(output / recipe.short_name)
    for each in PLATFORMS:
        _bill(output, recipe, each).unlink(missing_ok=True)
    for part in parts:
        bill = bill_of_materials(recipe.name, version, part.image, part.debian, part.licences)
        _write(_bill(output, recipe, part.image.platform), bill)
    used = [pair for part in parts for pair in (*inputs_of(part.debian, part.wheels), *part.files)]
    parameters = {"version": version, "platforms": [each.name for each in platforms]}
    statement = provenance(recipe.name, index, path, parameters, used)
    _write(output / f"{recipe.short_name}.provenance.json", statement)
    return Built(recipe.name, index["digest"], images)


class _Part:
    """One platform's image, and what it is made of."""

    def __init__(self, source: BuildSource, layout: ImageLayout, version: str, platform: Platform) -> None:
        recipe = source.recipe
        self.debian: list[Package] = []
        self.licences: list[tuple[Wheel, str]] = []
        self.files: list[tuple[str, str]] = []
        layers = []
        for base in base_layers(recipe.base, platform):
            layers.append(layout.add_layer(_packed_base(base.name, platform)))
            self.debian += base.packages
        with TemporaryDirectory() as folder:
            packages = self._packages(source, platform, Path(folder))
            layers += _package_layers(layout, packages)
        if recipe.files:
            layers.append(layout.add_layer(pack(self._packed(source, platform), "files of the recipe")))
        self.image = layout.add_image(platform, configuration(recipe, version), layers)

    @property
    def wheels(self) -> list[Wheel]:
        return [wheel for wheel, _ in self.licences]

    def _packages(self, source: BuildSource, platform: Platform, folder: Path) -> list[Installed]:
        if not source.recipe.lock:
            return []
        lock = source.inputs / source.recipe.lock
        found = installed(lock, source.recipe.programs, platform, folder)
        self.licences = [(each.wheel, each.licence) for each in found]
        return found

    def _packed(self, source: BuildSource, platform: Platform) -> Tree:
        tree = Tree()
        for each in source.recipe.files:
            name = each.source.replace("{architecture}", platform.architecture)
            path = source.inputs / name
            try:
                content = path.read_bytes()
            except OSError as error:
                raise ImageError(f"{path}: {error.strerror}; {source.path} packs it") from None
            tree.add(merged(each.target.lstrip("/")), File(content, 0o755 if each.executable else 0o644))
            self.files.append((name, hashlib.sha256(content).hexdigest()))
        return tree


def _package_layers(layout: ImageLayout, packages: Sequence[Installed]) -> list[Layer]:
    """Write what an index has and what only this machine has as two layers: the first changes less often."""
    layers = []
    for local, comment in ((False, "packages of pylock.toml"), (True, "packages of this build")):
        tree = Tree()
        for each in packages:
            if each.wheel.local is local:
                tree.update(each.tree)
        if len(tree):
            add_bytecode(tree)
            layers.append(layout.add_layer(pack(tree, comment)))
    return layers


@cache
def _packed_base(name: str, platform: Platform) -> Packed:
    tree = Tree()
    tree.update(base_layers(name, platform)[-1].tree)
    if name == "python":
        add_bytecode(tree)
    return pack(tree, f"Debian: {name}")


def configuration(recipe: Recipe, version: str) -> Json:
    """Return what a container is started with: an unprivileged user, and nothing that writes to its root."""
    environment = {"PATH": _PATH, "SSL_CERT_FILE": f"/{CERTIFICATES}"}
    if recipe.base == "python":
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= recipe.environment
    found: Json = {
        "User": f"{USER}:{USER}",
        "Env": [f"{key}={value}" for key, value in environment.items()],
        "Entrypoint": recipe.entrypoint,
        "WorkingDir": "/",
        "Labels": labels(recipe, version),
    }
    return {**found, "Cmd": recipe.command} if recipe.command else found


def labels(recipe: Recipe, version: str) -> dict[str, str]:
    """Return the labels that images have by convention.

    Source: github.com/opencontainers/image-spec, annotations.md (v1.1).
    """
    every = {
        "title": recipe.title,
        "description": recipe.description,
        "version": version,
        "licenses": recipe.licenses,
        "url": recipe.url,
        "source": recipe.url,
        "created": CREATED,
    }
    return {f"org.opencontainers.image.{key}": value for key, value in every.items() if value}


def _bill(output: Path, recipe: Recipe, platform: Platform) -> Path:
    return output / f"{recipe.short_name}.{platform.architecture}.spdx.json"


def _write(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
