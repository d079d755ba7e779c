"""Bytecode of an image's Python, compiled by the interpreter of the image's own base.

A read-only root could not keep what Python compiles at its start. The interpreter runs through its loader,
with the libraries of the base, which needs neither root nor chroot. Bytecode is the same on all platforms:
this machine's base compiles for the others.
"""

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from berth_images.bases import base_layers, bases
from berth_images.errors import ImageError
from berth_images.platforms import of_this_machine
from berth_images.tree import File, Tree

_KEEP: list[TemporaryDirectory[str]] = []
"""The folder of the interpreter, which goes with the process."""


def add_bytecode(tree: Tree) -> None:
    """Add the bytecode of each source file that lies in a folder of Python's.

    One process compiles them in the order of their names. Python never compares them with their sources.

    Raises: ImageError.
    """
    sources = Tree()
    for name in sorted(tree):
        entry = tree[name]
        if name.endswith(".py") and isinstance(entry, File):
            sources.add(name, File(entry.content))
    with TemporaryDirectory() as place:
        folder = Path(place)
        sources.write_folder(folder)
        _compile(folder)
        for path in sorted(folder.rglob("*.pyc")):
            tree.add(path.relative_to(folder).as_posix(), File(path.read_bytes()))


def _compile(folder: Path) -> None:
    root = _interpreter()
    platform = of_this_machine()
    command = [
        str(root / platform.loader),
        "--library-path",
        str(root / platform.libraries),
        str(root / f"usr/bin/python{bases().python}"),
        *("-S", "-s", "-m", "compileall", "-q", "-q", "--invalidation-mode", "unchecked-hash"),
        *("-s", str(folder), "-p", "/", str(folder)),
    ]
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    # Status 1 says that some file does not compile: packages carry such files for tests and other versions.
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode not in (0, 1):
        raise ImageError(f"compileall of the base's Python: {done.stderr.strip() or done.returncode}")


@cache
def _interpreter() -> Path:
    kept = TemporaryDirectory(prefix="berth-images-")
    _KEEP.append(kept)
    root = Path(kept.name)
    tree = Tree()
    for layer in base_layers("python", of_this_machine()):
        tree.update(layer.tree)
    tree.write_folder(root)
    return root
