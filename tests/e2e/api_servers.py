"""The API servers that tests run on: the one in memory and, where its programs are at hand, a real one."""

import os
from dataclasses import dataclass

import pytest

from berth.demo.processes import program
from berth.sandbox import SandboxError
from berth.sandbox.real import find_assets


@dataclass(frozen=True)
class ApiServer:
    """What `berth sandbox up` is to serve."""

    real: bool = False

    def fraction(self, count, divisor):
        """How many of so many a test takes: fewer on a real one, which writes to disk and takes its time."""
        return count // divisor if self.real else count

    def command(self, kubeconfig, *flags, pod_groups=False):
        """Its command line; the API server in memory serves pod groups unasked."""
        choice = ["--real"] if self.real else []
        choice += ["--pod-groups"] if self.real and pod_groups else []
        return [program("berth"), "sandbox", "up", f"--kubeconfig={kubeconfig}", *choice, *flags]


IN_MEMORY = ApiServer()


def api_server_called(name):
    """The one of that name; a test that needs a real one is skipped where there is none."""
    if name == "real":
        try:
            find_assets(None, os.environ)
        except SandboxError as error:
            pytest.skip(str(error))
    return ApiServer(real=name == "real")
