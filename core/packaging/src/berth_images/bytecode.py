"""Bytecode of an image's Python, compiled by the interpreter of the image's own base.

A read-only root could not keep what Python compiles at its start. The interpreter runs through its loader,
with the libraries of the base, which needs neither root nor chroot. Bytecode is the same on all platforms:
this machine's base compiles for the others.
"""

import marshal
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from berth_images.bases import base_layers, bases
from berth_images.errors import ImageError
from berth_images.platforms import of_this_machine
from berth_images.tree import File, Tree

_FORMAT = 2
"""Of marshal: what every version of Python reads."""
_PROGRAM = f"""
import marshal, sys
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import cache_from_source, source_hash
compiled = {{}}
for name, source in marshal.load(sys.stdin.buffer).items():
    try:
        code = compile(source, "/" + name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        continue  # templates, and tests of other versions of Python
    compiled[cache_from_source(name)] = bytes(_code_to_hash_pyc(code, source_hash(source), False))
sys.stdout.buffer.write(marshal.dumps(compiled, {_FORMAT}))
"""


def add_bytecode(tree: Tree) -> None:
    """Add the bytecode of each source file.

    One process compiles them in the order of their names. Python never compares them with their sources.

    Raises: ImageError.
    """
    sources = {
        name: entry.read()
        for name in sorted(tree)
        if name.endswith(".py") and isinstance(entry := tree[name], File)
    }
    for name, content in _compiled(sources).items():
        tree.add(name, File(content))


def _compiled(sources: dict[str, bytes]) -> dict[str, bytes]:
    root = Path(_interpreter().name)
    platform = of_this_machine()
    command = [
        str(root / platform.loader),
        *("--library-path", str(root / platform.libraries)),
        *(str(root / f"usr/bin/python{bases().python}"), "-S", "-s", "-W", "ignore", "-c", _PROGRAM),
    ]
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    given = marshal.dumps(sources, _FORMAT)
    done = subprocess.run(command, env=environment, input=given, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise ImageError(f"the base's Python does not compile: {done.stderr.decode().strip()}")
    compiled: dict[str, bytes] = marshal.loads(done.stdout)  # noqa: S302 (of the process started here)
    return compiled


@cache
def _interpreter() -> TemporaryDirectory[str]:
    """Return the folder of the interpreter, which goes with the process."""
    folder = TemporaryDirectory(prefix="berth-images-")
    tree = Tree()
    for layer in base_layers("python", of_this_machine()):
        tree.update(layer.tree)
    tree.write_folder(Path(folder.name))
    return folder
