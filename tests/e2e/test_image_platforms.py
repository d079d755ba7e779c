"""The images' processes on the platforms that this machine is not of: emulated, by `make images-check`."""

import subprocess
from contextlib import contextmanager

import pytest

from berth_images.platforms import PLATFORMS, of_this_machine
from berth_images.recipe import read
from tests.e2e.image_process import EMULATED_SECONDS, every, missing, output, started, until_there
from tests.e2e.installation import BIN, KUSTOMIZE, Installation, node
from tests.release.images import RECIPES
from tests.release.version import version

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not every(), reason="other platforms are emulated by `make images-check`"),
]


@pytest.fixture(
    scope="module",
    params=[each for each in PLATFORMS if each != of_this_machine()],
    ids=lambda platform: platform.architecture,
)
def emulated(request, image_program):
    """A function that gives the program of an image for another platform."""
    if reason := missing(request.param):
        pytest.skip(reason)
    return lambda name: image_program(name, request.param)


@pytest.fixture
def cluster(tmp_path):
    """A sandbox of one node, with nothing that schedules."""
    found = Installation(tmp_path)
    try:
        found.start_sandbox()
        found.kubectl("create", "-f", "-", stdin=node("n1"))
        yield found
    finally:
        found.stop()


@contextmanager
def beside(cluster, program, *arguments):
    """Run an image's process with the cluster's credentials; what it logs is among the cluster's logs."""
    flags = (f"--kubeconfig={cluster.kubeconfig}", "--secure-port=0")
    with (
        (cluster.folder / "emulated.log").open("w") as log,
        started(program, *arguments, *flags, shared=cluster.folder, log=log),
    ):
        yield


@pytest.mark.parametrize("name", RECIPES)
def test_an_emulated_image_starts(emulated, name):
    """Every image's entry point runs on the libraries and packages of its platform, and knows its flags."""
    done = output(emulated(name), *read(RECIPES[name]).command, "--help", seconds=EMULATED_SECONDS)

    assert 0 == done.returncode, done.stderr
    assert "usage" in f"{done.stdout}{done.stderr}".lower()


def test_the_emulated_schedulers_version(emulated):
    """The scheduler's image is of this version."""
    done = output(emulated("scheduler"), "--version", seconds=EMULATED_SECONDS)

    assert (0, f"berth, version {version()}\n") == (done.returncode, done.stdout), done.stderr


def test_an_emulated_scheduler_binds_a_pod(emulated, cluster):
    """The scheduler's image places a pod of a sandbox."""
    with beside(cluster, emulated("scheduler"), "scheduler", "--leader-elect=false"):
        cluster.submit("pod", "default-scheduler")
        cluster.until(lambda: cluster.is_bound("pod"), "the pod is bound", EMULATED_SECONDS)

    assert "n1" == cluster.get("pod", "pod", namespace="default")["spec"]["nodeName"]


def test_an_emulated_operator_makes_a_deployment(emulated, cluster):
    """The operator's image reconciles the Scheduler of an overlay."""
    cluster.install(KUSTOMIZE / "overlays" / "secondary")
    assert not cluster.get("deployment", "berth-main")

    with beside(cluster, emulated("operator"), "operator", "--scheduler-image=its", "--no-leader-elect"):
        found = cluster.until(
            lambda: cluster.get("deployment", "berth-main"), "the Deployment", EMULATED_SECONDS
        )

    assert "Scheduler" == found["metadata"]["ownerReferences"][0]["kind"]


@pytest.mark.parametrize("name", ["gpu-share", "coscheduling"])
def test_an_emulated_plugin_is_verified(emulated, name, tmp_path):
    """The image of a plugin, in Python or in Go, does what the handshake asks of it."""
    socket = tmp_path / "plugin.sock"
    verify = ("plugin", "verify", f"unix:{socket}", f"--timeout={EMULATED_SECONDS}", "--only=handshake/*")

    with started(emulated(name), "--address", f"unix:{socket}", shared=tmp_path) as process:
        until_there(socket, process, EMULATED_SECONDS)
        done = subprocess.run([BIN / "berth", *verify], capture_output=True, text=True, check=False)

    assert (0, True) == (done.returncode, " passed" in done.stdout), f"{done.stdout}{done.stderr}"
