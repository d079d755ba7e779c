"""Commands under tests/ that the suite does not run: each of their modules can be imported."""

import subprocess
import sys
from pathlib import Path

from tests.suite import PATIENCE_SECONDS

TESTS = Path(__file__).parents[1]
COMMANDS = (
    "benchmarks",
    "chance",
    "dashboards",
    "e2e",
    "failures",
    "golden",
    "hostile",
    "manifests",
    "upstream",
)


def modules():
    """The modules of the commands, by the name they are imported by."""
    files = (file for folder in COMMANDS for file in sorted((TESTS / folder).rglob("*.py")))
    named = (".".join(("tests", *file.relative_to(TESTS).with_suffix("").parts)) for file in files)
    return [name for name in named if not name.rpartition(".")[2].startswith(("test_", "__", "conftest"))]


def test_every_module_of_a_command_can_be_imported():
    """Names that such a module imports are there: nothing else runs it between two uses of the command."""
    found = modules()
    code = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"

    done = subprocess.run(
        [sys.executable, "-c", code, *found],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )

    assert len(found) > 150
    assert (0, "") == (done.returncode, done.stderr)
