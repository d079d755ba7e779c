"""Shell scripts by shellcheck, and the workflow files of the hosted CI by actionlint, with their steps."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.go_toolchain import ROOT, run_go

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
PLACES = (Path(sys.executable).parent, os.environ["PATH"])
SHELLCHECK = shutil.which("shellcheck", path=os.pathsep.join(map(str, PLACES)))
"""That of this environment, first; its wheels are not of every platform."""


def scripts() -> list[str]:
    """Return the shell scripts of this repository."""
    listed = ["git", "ls-files", "--", ".ci/run", "*.sh"]
    return subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def main() -> int:
    """Print what is found; exit status 1 if anything is."""
    problems = 0
    if SHELLCHECK is None:
        sys.stderr.write("script_check: shellcheck is not on this machine; its part is left out\n")
    else:
        problems += subprocess.run([SHELLCHECK, *scripts()], cwd=ROOT, check=False).returncode != 0
    workflows = map(str, sorted((ROOT / ".github/workflows").glob("*.yaml")))
    words = ("run", ACTIONLINT, "-shellcheck", SHELLCHECK or "", "-pyflakes", "", *workflows)
    problems += run_go(*words, folder=ROOT).returncode != 0
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
