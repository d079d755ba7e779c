import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from berth_images.errors import ImageError
from berth_images.platforms import of_this_machine
from tests.e2e.api_servers import api_server_called
from tests.e2e.image_process import every, missing, unpacked
from tests.e2e.threaded_sandbox import threaded_sandbox
from tests.release.images import image
from tests.suite import PATIENCE_SECONDS

# kubectl as the wheel brings it, so that the tests need nothing on PATH; KUBECTL names another one to try.
KUBECTL = os.environ.get("KUBECTL", str(Path(sys.executable).with_name("kubectl")))


class Cluster:
    """A running sandbox process and kubectl pointed at it."""

    def __init__(self, url, kubeconfig):
        self.url = url
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}

    def kubectl(self, *arguments, stdin=None, fails=False):
        """Give what kubectl prints; with `fails`, what it complains about."""
        done = subprocess.run(
            [KUBECTL, *arguments],
            input=stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert fails == (done.returncode != 0), f"{arguments}: {done.stdout}{done.stderr}"
        return done.stderr if fails else done.stdout

    def answer(self, *arguments):
        """Give what kubectl prints, whatever its exit status says."""
        done = subprocess.run(
            [KUBECTL, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return done.stdout

    def json(self, *arguments):
        """Give what kubectl prints, decoded."""
        return json.loads(self.kubectl(*arguments, "-o", "json"))

    def start(self, *arguments):
        """Start kubectl and leave it running."""
        return subprocess.Popen(
            [KUBECTL, *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def bind(self, name, node, namespace="default"):
        """Bind a pod as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        self.kubectl("create", "--raw", path, "-f", "-", stdin=body)


@pytest.fixture(scope="session")
def image_program(tmp_path_factory):
    """A function that gives the program of an image, built and unpacked once for a platform."""
    found, folder = {}, tmp_path_factory.mktemp("images")

    def program(name, platform=None):
        platform = platform or of_this_machine()
        key = f"{name}-{platform.architecture}"
        if key not in found:
            try:
                layout = image(name, platform)
            except ImageError as error:
                pytest.skip(f"the image is not built here: {error}")
            found[key] = unpacked(layout, folder / key, platform)
        return found[key]

    yield program
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def run_images(image_program):
    """What --run-image is given beside the checkout's programs: the images' in `make images-check`."""
    if missing() or not every():
        return ()
    names = ("operator", "scheduler", "gpu-share")
    return tuple(f"berth/{name}:*={image_program(name)}" for name in names)


@pytest.fixture(params=["in-memory", "real"])
def api_server(request):
    """Both API servers in turn."""
    return api_server_called(request.param)


@pytest.fixture
def cluster(tmp_path, api_server):
    """An API server with two nodes."""
    kubeconfig, nodes = tmp_path / "kubeconfig", [node("n1"), node("n2")]
    with ExitStack() as stack:
        if api_server.threaded:
            url = stack.enter_context(threaded_sandbox(kubeconfig, nodes))
            yield Cluster(url, kubeconfig)
        else:
            command = api_server.command(kubeconfig, pod_groups=api_server.has_pod_groups)
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.terminate)
            ready = process.stdout.readline()
            assert ready.startswith("sandbox ready at http"), ready
            found = Cluster(ready.split()[3], kubeconfig)
            for each in nodes:
                found.kubectl("create", "-f", "-", stdin=each)
            yield found


def node(name):
    """A Ready node of eight cores."""
    status = {
        "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    }
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(name, **metadata):
    """A pod of one container."""
    container = {"name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}
