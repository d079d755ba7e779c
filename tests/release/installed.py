"""An environment of Python that has built wheels and what they require, and nothing of this checkout."""

import subprocess
import sys
from pathlib import Path

from tests.release.dist import UV, built


def environment(folder: Path, *distributions: str) -> Path:
    """Make the environment; gives its programs' folder. Dependencies have the versions of a release."""
    wheels = built("wheels", "constraints")
    _uv("venv", "--quiet", "--python", sys.executable, folder)
    words = (
        "--python",
        folder / "bin/python",
        "--find-links",
        wheels,
        "--constraints",
        wheels / "constraints.txt",
    )
    _uv("pip", "install", "--quiet", *words, *anew(wheels), *distributions)
    return folder / "bin"


def anew(wheels: Path) -> list[str]:
    """Words that have uv read these wheels again, which it keeps by name and version: ours change without."""
    names = sorted({wheel.name.partition("-")[0] for wheel in wheels.glob("*.whl")})
    return [word for name in names for word in ("--refresh-package", name)]


def _uv(*words: object) -> None:
    command = [str(UV), *map(str, words)]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"uv {words[0]}: {done.stderr}")
