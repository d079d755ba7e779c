"""A test that never ends, and ends nothing that it starts: `test_reaper.py` ends the pytest that runs it."""

import os
import subprocess
from pathlib import Path

from berth.demo.processes import program

NOTE = "BERTH_NOTE"
DETACHED = "setsid sleep 600 > /dev/null 2>&1 & echo $!"


def test_never_ends(tmp_path):
    """A sandbox, and a process in a session of its own, whose parent has ended."""
    command = [program("berth"), "sandbox", "up", "--kubeconfig", str(tmp_path / "kubeconfig")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as sandbox:
        assert sandbox.stdout.readline()
        detached = subprocess.run(["sh", "-c", DETACHED], stdout=subprocess.PIPE, check=True)
        Path(os.environ[NOTE]).write_bytes(detached.stdout)
        assert sandbox.wait()
