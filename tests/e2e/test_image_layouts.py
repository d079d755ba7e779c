"""The images' processes, from their unpacked layouts: read-only root, user 65532, nothing of this checkout.

The scheduler's image is built in every run of the tests; `make images-check` builds all of them.
"""

import os
import re
import shutil
import subprocess

import pytest

from berth_images import bases
from berth_images import build as image_build
from berth_images.cli import summary
from berth_images.platforms import PLATFORMS
from berth_images.recipe import read
from tests.e2e.image_process import every, missing, output, started, unpacked, until_there
from tests.e2e.installation import KUSTOMIZE, Installation
from tests.e2e.page import Page
from tests.go_toolchain import GO_ROOT, ROOT
from tests.release.dist import UV, built
from tests.release.images import RECIPES, images
from tests.release.version import version
from tests.suite import BUILD_SECONDS

EVERY = pytest.mark.skipif(not every(), reason="all images are built by `make images-check`")
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture
def program(image_program):
    """The program that starts the scheduler's image."""
    return image_program("scheduler")


def test_the_scheduler_starts(program):
    """The image's entry point runs on the image's Python, libraries and packages."""
    done = output(program, "--version")

    assert (0, f"berth, version {version()}\n") == (done.returncode, done.stdout), done.stderr


PROBE = """
import json, os, ssl
import berth.version
from pathlib import Path
print(os.getuid(), os.getgid())
try:
    open("/written", "w")
except OSError as error:
    print(error.strerror)
print(Path(json.__cached__).is_file(), Path(berth.version.__cached__).is_file())
print(len(ssl.create_default_context().get_ca_certs()) > 100)
"""


def test_what_the_process_is_and_has(program):
    """It is user 65532, cannot write to its root, has bytecode, and trusts public authorities."""
    interpreter = program.with_name("python")
    interpreter.write_text(program.read_text().replace(' berth "$@"', ' python3 "$@"'))
    interpreter.chmod(0o755)

    done = output(interpreter, "-c", PROBE)

    assert ["65532 65532", "Read-only file system", "True True", "True"] == done.stdout.splitlines(), (
        done.stderr
    )


def test_the_operators_scheduler_is_the_images(program, tmp_path):
    """What the operator starts from the image becomes available, and binds a pod."""
    cluster = Installation(tmp_path, images=[f"berth/scheduler:*={program}"])
    try:
        cluster.start()
        cluster.install(KUSTOMIZE / "overlays" / "secondary")
        cluster.until(lambda: cluster.condition("Available")[0] == "True", "the Scheduler is available")
        cluster.submit("pod", "berth")
        cluster.until(lambda: cluster.is_bound("pod"), "the pod is bound")
        (replica,) = cluster.pods()
        command = (cluster.process(replica) / "cmdline").read_bytes()
    finally:
        cluster.stop()

    assert [b"/usr/bin/python3.13", b"/usr/local/bin/berth"] == command.split(b"\0")[:2]


@EVERY
@pytest.mark.parametrize("name", RECIPES)
def test_an_image_starts(image_program, name):
    """Every image's entry point runs, and knows its flags."""
    done = output(image_program(name), *read(RECIPES[name]).command, "--help")

    assert 0 == done.returncode, done.stderr
    assert "usage" in f"{done.stdout}{done.stderr}".lower()


@EVERY
def test_what_is_built_twice_is_the_same(tmp_path):
    """Two builds of every image, for all platforms, have the same digests."""
    first, second = (rebuilt(tmp_path / name) for name in "ab")

    assert first == second


def rebuilt(folder):
    """Digests and sizes of all images, whose base is made again."""
    image_build._packed_base.cache_clear()
    bases._layer.cache_clear()
    return [summary(each) for each in images(folder, RECIPES, PLATFORMS)]


@EVERY
@pytest.mark.parametrize("language", ["python", "go"])
def test_a_copied_template_becomes_an_image(language, tmp_path):
    """Outside of the repository the page's commands build an image, whose process is a plugin."""
    copy, shared = tmp_path / "copy", tmp_path / "shared"
    shutil.copytree(ROOT / "plugin-sdk" / language / "template", copy)
    path = (UV.parent, GO_ROOT / "bin", os.environ["PATH"])
    variables = {**os.environ, "DIST": str(built("wheels", "go")), "PATH": os.pathsep.join(map(str, path))}
    building((copy / "README.md").read_text()).run(copy, variables, BUILD_SECONDS)
    program = unpacked(copy / "images/hello", tmp_path / "image")
    shared.mkdir()
    address = f"unix:{shared}/plugin.sock"

    with started(program, "--address", address, shared=shared) as process:
        until_there(shared / "plugin.sock", process)
        verify = ("plugin", "verify", address, "--timeout=60", "--only=handshake/*")
        done = subprocess.run([UV.with_name("berth"), *verify], capture_output=True, text=True, check=False)

    assert (0, True) == (done.returncode, " passed" in done.stdout), done.stdout


def building(page):
    """The commands of a page that test the copy, and those that build its image."""
    blocks = re.findall(r"^```(sh|shell)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return Page(
        "".join(f"```sh\n{body}```\n" for kind, body in blocks if kind == "sh" or "berth-images" in body)
    )
