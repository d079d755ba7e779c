"""What a build takes from others is named by what it is, not by a name that they may move."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")


def test_actions_are_pinned_by_commit():
    """A tag can be moved to another commit; the comment is for people and Dependabot, which moves both."""
    files = sorted((ROOT / ".github" / "workflows").iterdir())
    uses = [line.strip().removeprefix("- ") for file in files for line in file.read_text().splitlines()]
    uses = [line for line in uses if line.startswith("uses:")]

    assert uses
    assert [] == [line for line in uses if not PINNED.fullmatch(line)]


def test_every_file_of_the_lock_has_a_hash():
    """The one of uv itself is what `make` installs it by."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    files = [file for one in packages for file in (*one.get("wheels", ()), one.get("sdist")) if file]

    assert "uv" in {one["name"] for one in packages}
    assert all(file["hash"].startswith("sha256:") for file in files)
    assert "--require-hashes" in (ROOT / "Makefile").read_text()
