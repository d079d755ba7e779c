"""What a command started ends with it, whichever signal it gets."""

import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from berth.demo.processes import program
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import eventually

STAYING = "staying up"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {nodeName: n, containers: [{name: c, image: "sleeper:1"}]}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""


def descendants(pid):
    """The processes that a process started, and those that they started."""
    found = {}
    for stat in alive():
        number, _, rest = stat.partition(" ")
        found.setdefault(int(rest.rpartition(")")[2].split()[1]), []).append(int(number))
    every, more = [], [pid]
    while more:
        more = [child for parent in more for child in found.get(parent, ())]
        every += more
    return every


def alive():
    """What the kernel says of each process; one that ends meanwhile is left out."""
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            stats.append(path.read_text(errors="replace"))
    return stats


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def started(log, *line, interrupts=signal.SIG_DFL):
    """A command that writes into a log; interrupts are what it was started with, not what the tests were."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [program("berth"), *line],
            stdout=output,
            stderr=output,
            preexec_fn=lambda: signal.signal(signal.SIGINT, interrupts),  # noqa: PLW1509 (no lock is taken)
        )


async def ends(process, number):
    """Send the signal; give the exit code once it and all that it started have ended."""
    children = descendants(process.pid)
    assert children
    process.send_signal(number)
    code = process.wait(PATIENCE_SECONDS)
    await eventually(lambda: not any(map(runs, children)))
    return code


@pytest.mark.parametrize(
    ("number", "interrupts"),
    [
        (signal.SIGTERM, signal.SIG_IGN),
        (signal.SIGINT, signal.SIG_DFL),
        (signal.SIGKILL, signal.SIG_DFL),
    ],
)
async def test_demo(tmp_path, number, interrupts):
    """`berth demo --keep` ends sandbox, sidecar and scheduler, also in the background of a script."""
    log, line = tmp_path / "log", ["demo", "--keep", "--pods", "20", "--folder", str(tmp_path / "run")]
    process = started(log, *line, interrupts=interrupts)
    try:
        await eventually(lambda: STAYING in log.read_text() or process.poll() is not None)
        assert STAYING in log.read_text(), log.read_text()
        expected = -number if number == signal.SIGKILL else 128 + number

        assert expected == await ends(process, number)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_sandbox(tmp_path, number):
    """`berth sandbox up` ends the containers that it runs."""
    kubeconfig, log = tmp_path / "kubeconfig", tmp_path / "log"
    (tmp_path / "objects.yaml").write_text(f"{NODE}---{POD}")
    line = ["sandbox", "up", "--authorization-mode=RBAC", "--kubeconfig", str(kubeconfig)]
    line += ["--load", str(tmp_path / "objects.yaml"), "--run-image", "sleeper:*=sleep 600"]
    process = started(log, *line)
    try:
        await eventually(lambda: descendants(process.pid) or process.poll() is not None)

        assert (0 if number == signal.SIGTERM else -number) == await ends(process, number)
    finally:
        process.kill()
        process.wait()
