"""What containers of a pod reach of their plugins' sockets: their volumes, and nothing else, as their user.

The kubelet's part, played with a mount namespace; that takes root and unshare(1).
"""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.e2e.installation import ROOT
from tests.e2e.socket_as_user import SERVING
from tests.suite import PATIENCE_SECONDS

SOCKETS = "/run/berth/"
# The arguments are pairs of folder and mount point, then "--" and the command.
_MOUNT = """
mount -t tmpfs -o mode=755 none /run
while [ "$1" != -- ]; do mkdir -p "$2" && mount --bind "$1" "$2" && shift 2; done
shift
exec "$@"
"""


def needs_root():
    """Skip a test where users and mounts cannot be changed."""
    if os.geteuid() != 0:
        pytest.skip("only root may act as another user")
    allowed = (
        shutil.which("unshare") and not subprocess.run(["unshare", "--mount", "true"], check=False).returncode
    )
    if not allowed:
        pytest.skip("no unshare that may change mounts")


def containers(pod):
    """Give a pod's containers by name, sidecars included."""
    spec = pod["spec"]
    return {one["name"]: one for one in (*spec["initContainers"], *spec["containers"])}


class Views:
    """A pod's volumes of sockets in a folder, as the kubelet makes them."""

    def __init__(self, pod, folder):
        self.folder, self.containers = folder, containers(pod)
        self.context = pod["spec"]["securityContext"]
        for volume in pod["spec"]["volumes"]:
            if "emptyDir" in volume:
                path = folder / volume["name"]
                path.mkdir()
                os.chown(path, 0, self.context["fsGroup"])
                path.chmod(0o2777)

    def user(self, name):
        """Give the user that a container runs as."""
        return self.containers[name].get("securityContext", {}).get("runAsUser", self.context["runAsUser"])

    def ask(self, view, *words, user=None, group=None):
        """Give what socket_as_user says in a container's view, as its user unless another is given."""
        done = subprocess.run(
            self._command(view, *words, user=user, group=group),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextmanager
    def serving(self, view, path, user=None):
        """A plugin serves in a container's view."""
        environment = os.environ | {"BERTH_PLUGIN_SOCKET_SHARED": "true"}
        process = subprocess.Popen(
            self._command(view, "serve", path, user=user),
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert SERVING == process.stdout.readline().strip()
            yield
            assert process.poll() is None
        finally:
            process.communicate(timeout=PATIENCE_SECONDS)

    def _command(self, view, *words, user=None, group=None):
        mounts = [
            part
            for mount in self.containers[view]["volumeMounts"]
            if mount["mountPath"].startswith(SOCKETS)
            for part in (str(self.folder / mount["name"]), mount["mountPath"])
        ]
        who = (str(user or self.user(view)), str(group or self.context["runAsGroup"]))
        program = [sys.executable, "-m", "tests.e2e.socket_as_user", *who, *map(str, words)]
        return ["unshare", "--mount", "sh", "-ec", _MOUNT, "sh", *mounts, "--", *program]
