"""Format, lint, types, and the tests nearest to the files that were changed: what to run after each edit.

    make check                      the files that differ from HEAD
    make check FILES="a.py b.py"    these files
    python -m tests.check --map     which test files are nearest to each module

A test file is near to a module that it imports, and nearest if it has the module's name. What a commit has to
pass are `make test` and `make lint`.
"""

import argparse
import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import click

from tests.sources import TREES

ROOT = Path(__file__).parents[1]
SOURCES = {
    **{str((tree / "berth").relative_to(ROOT)): "" for tree in TREES},
    "core/packaging/src/berth_images": "images",
    "plugin-sdk/python/src/berth_sdk": "sdk",
}
"""The folders of packages, and where below tests/unit the tests of each are."""
QUICK = ("tests/unit", "tests/scenarios")
"""Tests that need neither a cluster nor a compiler; others run where they were changed themselves."""
MAX_FILES = 8
"""Max test files for one module: one that many import has its own tests among the first."""


def modules(root=ROOT):
    """The file of each module by its dotted name."""
    found = {}
    for source in SOURCES:
        for file in sorted((root / source).rglob("*.py")):
            parts = file.relative_to((root / source).parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = file
    return found


def imported(text):
    """The dotted names that a file's imports may mean: modules, and what is taken out of packages."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@cache
def nearest(root=ROOT):
    """The test files of each module, those of its name first, then those that import the fewest modules.

    A module that no test imports has those of its package.
    """
    known = modules(root)
    near = defaultdict(list)
    for folder in QUICK:
        for file in sorted((root / folder).rglob("test_*.py")):
            names = imported(file.read_text(encoding="utf-8")) & known.keys()
            for name in names:
                is_namesake = file.stem == f"test_{name.rpartition('.')[2]}"
                near[name].append((not is_namesake, len(names), file))
    return {name: [file for *_, file in sorted(near[name])] or _of_package(name, root) for name in known}


def _of_package(name, root):
    """The test files in the deepest folder that has the name of a package around the module."""
    package, *parts = name.split(".")
    parts = [*(folder for source, folder in SOURCES.items() if folder and source.endswith(package)), *parts]
    for depth in range(len(parts), 0, -1):
        found = sorted(root.joinpath("tests/unit", *parts[:depth]).glob("test_*.py"))
        if found:
            return found
    return []


def near_tests(files, root=ROOT):
    """The test files to run for these files: themselves, and the nearest ones to each module."""
    names = {file: name for name, file in modules(root).items()}
    near = nearest(root)
    found = dict.fromkeys(file for file in files if file.name.startswith("test_"))
    for file in files:
        found |= dict.fromkeys(near.get(names.get(file, ""), [])[:MAX_FILES])
    return list(found)


def changed():
    """The Python files that differ from HEAD, and those that git does not know yet."""
    command = ("git", "-C", str(ROOT), "ls-files", "--modified", "--others", "--exclude-standard", "*.py")
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    staged = subprocess.run(
        ("git", "-C", str(ROOT), "diff", "--cached", "--name-only", "--", "*.py"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [ROOT / name for name in sorted({*listed, *staged}) if (ROOT / name).is_file()]


def check(files):
    """Run all checks side by side, then the tests; the first exit code that is not 0."""
    names = [str(file) for file in files]
    tools = [
        ("ruff", "format", "--check", "--quiet", *names),
        ("ruff", "check", "--quiet", *names),
        ("mypy",),
    ]
    running = [
        subprocess.Popen([Path(sys.executable).parent / tool, *rest], cwd=ROOT) for tool, *rest in tools
    ]
    codes = [process.wait() for process in running]
    tests = near_tests(files)
    if tests and not any(codes):
        shown = [str(test.relative_to(ROOT)) for test in tests]
        click.echo("\n  ".join((f"tests nearest to {len(files)} files:", *shown)))
        codes.append(
            subprocess.call([sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", *shown], cwd=ROOT)
        )
    return next((code for code in codes if code), 0)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.check", description="Check what was changed.")
    parser.add_argument(
        "files", nargs="*", type=Path, help="Python files; those that differ from HEAD without"
    )
    parser.add_argument("--map", action="store_true", help="print the test files nearest to each module")
    options = parser.parse_args()
    if options.map:
        for name, tests in nearest().items():
            click.echo(" ".join((name, *(str(test.relative_to(ROOT)) for test in tests[:MAX_FILES]))))
        return 0
    files = [file.resolve() for file in options.files] or changed()
    missing = [str(file) for file in files if not file.is_file() or file.suffix != ".py"]
    if missing:
        parser.error(f"{', '.join(missing)}: no Python file; name files of this repository")
    return check(files) if files else 0


if __name__ == "__main__":
    sys.exit(main())
