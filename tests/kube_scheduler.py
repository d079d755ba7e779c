"""kube-scheduler itself, for tests and benchmarks to hold Berth against, where its program is at hand."""

import os
from pathlib import Path
from shutil import which

import pytest

VARIABLE = "KUBE_SCHEDULER"
WITHOUT = f"no kube-scheduler: {VARIABLE} does not name its program, and it is not on the PATH"


def kube_scheduler():
    """The program's path, or None where there is none.

    Raises: FileNotFoundError where the variable names something that cannot be run.
    """
    named = os.environ.get(VARIABLE)
    found = which(named or "kube-scheduler")
    if named and not found:
        raise FileNotFoundError(f"{VARIABLE}={named}: no program")
    return str(Path(found).resolve()) if found else None


# Both schedulers, for tests of what is true of either.
EITHER = (
    pytest.param(("berth", "scheduler"), id="berth"),
    pytest.param(
        (kube_scheduler(),),
        id="kube-scheduler",
        marks=pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT),
    ),
)
