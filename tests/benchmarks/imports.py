"""What the start of each program imports: modules, and CPU until they are there, in a process of its own.

All of them in turns, and in turns with another tree where `--beside DIR` names one, such as a worktree of
the commit before: other processes on the machine then slow both. Garbage is collected seldom, as `berth`
has it; bytecode is there from the first round, which does not count.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.tables import Table, quantiles

ROUNDS = 10
ROOT = Path(__file__).parents[2]
UNTIL_FIRST_REQUEST = (
    "from berth.cli.main import main; main(['scheduler', '--version'], standalone_mode=False)"
)
"""The command imports all that it needs for its first request before it looks at its flags."""
PROGRAMS = {
    "berth --version": "from berth.cli.main import main; main(['--version'], standalone_mode=False)",
    "berth explain": "import berth.cli.explain",
    "berth scheduler, to its first request": UNTIL_FIRST_REQUEST,
    "berth scheduler, to its process": f"{UNTIL_FIRST_REQUEST}; import berth.scheduler.process",
    "berth sandbox": "import berth.commands.sandbox, berth.sandbox.server",
    "a plugin of the Python SDK": "import berth_sdk",
}
SAID = "; import sys, time; print(time.process_time(), len(sys.modules))"


def run(options):
    """A table of all programs; a line for each tree."""
    trees = [ROOT, *([options.beside] if options.beside else [])]
    rounds = range((options.rounds or ROUNDS) + 1)
    figures = [{(name, tree): start(name, tree) for name in PROGRAMS for tree in trees} for _ in rounds][1:]
    table = Table(
        "imports until a program does its work",
        ["program", "tree", "modules", "CPU least s", "CPU p50 s", "CPU most s"],
    )
    for name, tree in figures[0]:
        cpu = quantiles([each[name, tree][0] for each in figures], 0.0, 0.5, 1.0)
        where = "this" if tree == ROOT else "beside"
        table.add(name, where, figures[0][name, tree][1], *(f"{each:.3f}" for each in cpu))
    table.show()


def start(name, tree):
    """CPU seconds, and how many modules."""
    code = f"import gc; gc.disable(); {PROGRAMS[name]}{SAID}"
    cpu, modules = python(code, tree).split()[-2:]
    return float(cpu), int(modules)


def python(code, tree):
    """What a fresh interpreter prints that has the packages of that tree."""
    sources = [*tree.glob("core/*/src"), *tree.glob("proto/python/src"), tree / "plugin-sdk/python/src"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = (sys.executable, "-c", code)
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
