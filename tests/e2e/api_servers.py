"""The API servers that tests run on: the one in memory and, where its programs are at hand, a real one."""

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache

import pytest

from berth.demo.processes import program
from berth.sandbox import SandboxError
from berth.sandbox.real import find_assets
from tests.suite import PATIENCE_SECONDS

OF_POD_GROUPS = 36
"""The minor version whose PodGroups are Berth's."""


@dataclass(frozen=True)
class ApiServer:
    """What `berth sandbox up` is to serve; `threaded`: by a thread of the test, if it names no process."""

    real: bool = False
    threaded: bool = False

    @property
    def has_pod_groups(self):
        """Whether it can serve pod groups."""
        return not self.real or version()[1] >= OF_POD_GROUPS

    def fraction(self, count, divisor):
        """How many of so many a test takes: fewer on a real one, which writes to disk and takes its time."""
        return count // divisor if self.real else count

    def command(self, kubeconfig, *flags, pod_groups=False):
        """Its command line; the API server in memory serves pod groups unasked."""
        if pod_groups and not self.has_pod_groups:
            pytest.skip("PodGroups of this version came with Kubernetes 1.36")
        choice = ["--real"] if self.real else []
        choice += ["--pod-groups"] if self.real and pod_groups else []
        return [program("berth"), "sandbox", "up", f"--kubeconfig={kubeconfig}", *choice, *flags]


IN_MEMORY = ApiServer()
THREADED = ApiServer(threaded=True)


def api_server_called(name):
    """The one of that name; a test that needs a real one is skipped where there is none."""
    if name == "real":
        try:
            find_assets(None, os.environ)
        except SandboxError as error:
            pytest.skip(str(error))
    return ApiServer(real=True) if name == "real" else THREADED


@cache
def version():
    """The version of the real one, as numbers: (1, 36, 2)."""
    command = [find_assets(None, os.environ).api_server, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS)
    return tuple(map(int, re.search(r"v(\d+)\.(\d+)\.(\d+)", done.stdout).groups()))
