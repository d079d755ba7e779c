"""What the image files install runs: in an empty environment, by an unprivileged user, on a read-only tree.

No image engine is needed: the script that the image files run is run here.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
FILES = {
    "berth": ROOT / "core/images/berth.Dockerfile",
    "capacity-scheduling": ROOT / "out-of-tree-plugins/capacity-scheduling/Dockerfile",
    "gpu-share": ROOT / "out-of-tree-plugins/gpu-share/Dockerfile",
}
NOBODY = 65532


@pytest.fixture
def open_folder():
    """A folder that other users may enter, as pytest's own may not be."""
    folder = Path(tempfile.mkdtemp(prefix="berth-image-"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    shutil.rmtree(folder)


def installed(dockerfile, folder):
    """Install what an image file's build stage does; gives the environment."""
    words = re.search(r"^RUN core/images/install.sh (\S+) (.+)$", dockerfile.read_text(), re.MULTILINE)
    target = folder / words[1].lstrip("/")
    target.parent.mkdir(parents=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "UV_PYTHON": interpreter()[0], "UV_PYTHON_DOWNLOADS": "never"}
    environment.pop("VIRTUAL_ENV", None)
    command = [ROOT / "core/images/install.sh", target, *words[2].split()]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert 0 == done.returncode, done.stderr
    subprocess.run(["chmod", "-R", "a-w,a+rX", folder], check=True)
    return target


def interpreter():
    """Give a Python that other users can reach, ours or the system's, and whether there is one."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        program = Path(candidate).resolve()
        if program.exists() and all(folder.stat().st_mode & 0o001 for folder in program.parents):
            minor = "import sys; print(sys.version_info >= (3, 11))"
            if (
                "True"
                in subprocess.run([program, "-c", minor], capture_output=True, text=True, check=False).stdout
            ):
                return str(program), True
    return sys.executable, False


def as_nobody(program, *arguments):
    """Run a program as an image does: no home, nothing to write to, no rights where we can give them up."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    user = (
        {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        if os.geteuid() == 0 and interpreter()[1]
        else {}
    )
    return subprocess.run(
        [program, *arguments],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **user,
    )


@pytest.mark.parametrize(
    ("image", "program", "arguments", "shown"),
    [
        ("berth", "berth", ("operator", "--help"), "--scheduler-image"),
        ("capacity-scheduling", "berth-capacity-scheduling", ("--help",), "--log-level"),
        ("gpu-share", "berth-gpu-share", ("--help",), "--policy"),
    ],
)
def test_runs(open_folder, image, program, arguments, shown):
    """The entry point starts, and needs nothing that is not in the image."""
    environment = installed(FILES[image], open_folder)
    done = as_nobody(environment / "bin" / program, *arguments)
    assert (0, True) == (done.returncode, shown in done.stdout), done.stderr

    if image == "berth":
        done = as_nobody(environment / "bin" / "berth", "scheduler", "--secure-port=0")
        assert "no configuration has been provided" in done.stderr
        assert not (environment / "bin" / "pytest").exists()


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_image_file(file):
    """An image is built in stages, from pinned bases, and runs as no user of the machine."""
    text = file.read_text()
    bases = [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]
    stages = {line.split()[3] for line in text.splitlines() if line.startswith("FROM ") and " AS " in line}

    assert all(re.search(r":\d+\.\d+\.\d+", base) for base in bases if base not in stages)
    assert f"USER {NOBODY}:{NOBODY}" in text
    assert text.index("USER ") > text.rindex("COPY ")
