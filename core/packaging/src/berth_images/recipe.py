"""An image's recipe: a TOML file next to the files that it packs.

name = "registry.example.com/hello"
title = "hello"
base = "python"                                  # static, c or python
entrypoint = ["python3", "/plugin/hello.py"]
lock = "pylock.toml"                             # Python packages, with their hashes (PEP 751)

[[files]]
source = "hello.py"                              # {architecture} stands for amd64 or arm64
target = "/plugin/hello.py"
"""

import re
from pathlib import Path, PurePosixPath

import msgspec

from berth_images.errors import ImageError

_PART = "[a-z0-9]+([._-]+[a-z0-9]+)*"
_NAME = re.compile(f"([A-Za-z0-9.-]+(:[0-9]+)?/)?{_PART}(/{_PART})*")
"""Source: github.com/distribution/reference, reference.go."""


class PackedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of this machine, and where the image has it."""

    source: str
    target: str
    executable: bool = False


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An image's description. Names of files are relative to the folder of inputs."""

    name: str
    title: str
    base: str
    entrypoint: list[str]
    command: list[str] = []
    description: str = ""
    licenses: str = ""
    url: str = ""
    lock: str = ""
    programs: list[str] = []
    """Distributions whose console scripts, if they have any, the image has in /usr/local/bin."""
    files: list[PackedFile] = []
    environment: dict[str, str] = {}

    @property
    def short_name(self) -> str:
        """The last part of the name, which the layout's folder has."""
        return self.name.rpartition("/")[2]


def read(path: Path) -> Recipe:
    """Return the recipe in a file.

    Raises: ImageError that names the file and the field.
    """
    try:
        recipe = msgspec.toml.decode(path.read_bytes(), type=Recipe)
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise ImageError(f"{path}: {error}") from None
    _check(recipe, path)
    return recipe


def _check(recipe: Recipe, path: Path) -> None:
    if not _NAME.fullmatch(recipe.name):
        raise ImageError(
            f"{path}: `name` {recipe.name!r}: use lower case and no tag, such as registry.example.com/hello"
        )
    if recipe.lock and recipe.base != "python":
        raise ImageError(f'{path}: `lock` needs `base = "python"`, which has the interpreter')
    if not recipe.entrypoint:
        raise ImageError(f"{path}: `entrypoint` names no program")
    for each in recipe.files:
        target = PurePosixPath(each.target)
        if not target.is_absolute() or not target.name or ".." in target.parts:
            raise ImageError(f"{path}: `target` {each.target!r}: use an absolute name, without ..")
