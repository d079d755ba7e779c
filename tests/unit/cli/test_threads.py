"""Importing NumPy starts no threads: a scheduler uses one core, however many its node has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = "import berth.cli.main, numpy, os; print(len(os.listdir('/proc/self/task')))"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_numpy_starts_no_threads_for_itself():
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    counted = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True
    )

    assert "1" == counted.stdout.strip()
