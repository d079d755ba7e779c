"""A template that was copied out of this repository works as its page says, with what a release has."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path

import pytest

from berth.sandbox.free_port import free_port
from tests import java_toolchain
from tests.e2e.page import Page
from tests.go_toolchain import ENVIRONMENT, GO_ROOT, ROOT
from tests.node_toolchain import MODULES, NODE, NODE_SDK, NPM, install
from tests.release.dist import built
from tests.release.installed import environment
from tests.rust_toolchain import BUILDS, named_apart, needs_cargo
from tests.rust_toolchain import ENVIRONMENT as RUST_ENVIRONMENT
from tests.suite import BUILD_SECONDS

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: kubeconfig}
leaderElection: {leaderElect: false}
"""
NODE_OF_THE_CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: node-0}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""
NEEDS_JAVA = pytest.mark.skipif(bool(java_toolchain.missing()), reason=java_toolchain.missing())
ARTEFACT = {"python": "wheels", "go": "go", "typescript": "npm", "rust": "crate", "java": "maven"}
PASSED = {
    "python": "3 passed",
    "go": "ok ",
    "typescript": "pass 3",
    "rust": "3 passed",
    "java": "Tests run: 3, Failures: 0, Errors: 0",
}
PROGRAM = {
    "python": (".venv/bin/python", "hello.py", "--address"),
    "go": ("./plugin", "-address"),
    "typescript": (str(NODE), "hello.ts", "--address"),
    "rust": (str(BUILDS / "debug/copy-of-hello"), "--address"),
    "java": ("java", *java_toolchain.JVM, "-jar", "target/plugin.jar", "--address"),
}
"""How the program that the page's commands have built is started."""


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    """The programs of an environment with the wheels of the conformance kit and the sandbox."""
    folder = tmp_path_factory.mktemp("kit") / "environment"
    return environment(folder, "berth-conformance", "berth-sandbox")


@pytest.fixture(scope="session")
def scheduler(kit, tmp_path_factory):
    """What the command needs to reach a scheduler on a sandbox, both of the wheels."""
    folder, port = tmp_path_factory.mktemp("cluster"), free_port()
    (folder / "scheduler.yaml").write_text(CONFIGURATION)
    (folder / "cluster.yaml").write_text(NODE_OF_THE_CLUSTER)
    serving = ("--bind-address=127.0.0.1", f"--secure-port={port}", "--authorization-always-allow-paths=/*")
    commands = (
        ("sandbox", "up", "--kubeconfig", "kubeconfig", "--load", "cluster.yaml"),
        ("scheduler", "--config=scheduler.yaml", *serving),
    )
    reached = {
        "PATH": os.environ["PATH"],
        "BERTH_SERVER": f"https://127.0.0.1:{port}",
        "BERTH_INSECURE_SKIP_TLS_VERIFY": "true",
    }
    with ExitStack() as ends:
        for command, ready in zip(
            commands, ((folder / "kubeconfig").exists, lambda: answers(port)), strict=True
        ):
            log = ends.enter_context((folder / f"{command[0]}.log").open("w"))
            process = subprocess.Popen([kit / "berth", *command], cwd=folder, stdout=log, stderr=log)
            ends.callback(process.wait, BUILD_SECONDS)
            ends.callback(process.terminate)
            end = time.monotonic() + BUILD_SECONDS
            while not ready():
                assert time.monotonic() < end, (folder / f"{command[0]}.log").read_text()
                time.sleep(0.2)
        yield reached


def answers(port):
    """Whether the scheduler does."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.mark.parametrize(
    "language",
    [
        "python",
        "go",
        pytest.param("rust", marks=needs_cargo),
        "typescript",
        pytest.param("java", marks=NEEDS_JAVA),
    ],
)
def test_copy(language, kit, scheduler, tmp_path):
    """In a copy the commands of the page succeed; the plugin is verified, attached to a scheduler, detached.

    Neither the page nor the plugin, the kit or the scheduler sees this repository: only a release's files.
    """
    copy, programs = tmp_path / "copy", tmp_path / "programs"
    made = shutil.ignore_patterns("target")
    shutil.copytree(ROOT / "plugin-sdk" / language / "template", copy, ignore=made)
    programs.mkdir()
    (programs / "uv").symlink_to(Path(sys.executable).parent / "uv")
    if language == "typescript":
        install()
        npm_that_keeps_to_the_lock(programs)
    if language == "rust":
        named_apart(copy, "copy-of-hello")
    page = Page((copy / "README.md").read_text(encoding="utf-8"))
    tools = java_toolchain.environment() if language == "java" else dict(os.environ)
    path = (programs, NODE.parent, GO_ROOT / "bin", Path(sys.base_prefix, "bin"), tools["PATH"])
    dist = built(ARTEFACT[language])
    variables = {**tools, **ENVIRONMENT, **RUST_ENVIRONMENT, "DIST": str(dist)}
    variables.pop("VIRTUAL_ENV", None)
    variables["PATH"] = os.pathsep.join(map(str, path))

    # The page for Java installs the SDK, which others may be building.
    with java_toolchain.alone() if language == "java" else nullcontext():
        printed = page.run(copy, variables, BUILD_SECONDS)
        said = used(copy, variables, PROGRAM[language], kit / "berth", scheduler)

    assert PASSED[language] in "".join(printed)
    assert all(words in said for words in (" passed", "hello attached", "hello detached")), said


def used(folder, variables, program, berth, scheduler):
    """Start the program in its folder; verify, attach and detach it; what was said."""
    address, log = f"unix:{folder}/sockets/plugin.sock", folder / "plugin.log"
    with log.open("w") as output:
        plugin = subprocess.Popen(
            [*program, address], cwd=folder, env=variables, stdout=output, stderr=output
        )
    try:
        return "".join(
            done(berth, scheduler, command)
            for command in (
                ("verify", address, "--timeout=60", "--only=handshake/*"),
                ("attach", "hello", "--address", address, "--profile=default-scheduler"),
                ("detach", "hello"),
            )
        )
    finally:
        plugin.send_signal(signal.SIGTERM)
        plugin.wait(BUILD_SECONDS)


def done(berth, scheduler, command):
    """What the command says once it succeeds: a scheduler gives a plugin ten seconds to get ready."""
    end = time.monotonic() + BUILD_SECONDS
    while True:
        ran = subprocess.run(
            [berth, "plugin", *command],
            cwd="/",
            env=scheduler,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if ran.returncode == 0:
            return ran.stdout
        assert time.monotonic() < end, f"{ran.stdout}{ran.stderr}"


def npm_that_keeps_to_the_lock(folder):
    """A `npm` that installs the given package beside the versions of this repository, not the newest ones.

    Everything but `npm install` is the real one.
    """
    modules = "node_modules/@berth/plugin-sdk"
    lines = (
        "#!/bin/sh -e",
        f'test "$1" = install || exec "{NODE}" "{NPM}" "$@"',
        "mkdir -p node_modules",
        f'for each in "{MODULES}"/*; do test "${{each##*/}}" = @berth || ln -s "$each" node_modules; done',
        f"mkdir -p {modules}",
        f'tar -xzf "$2" -C {modules} --strip-components=1',
        # What the SDK has in a version of its own, beside the other packages of this repository.
        f'ln -s "{NODE_SDK}/node_modules" {modules}',
    )
    (folder / "npm").write_text("\n".join((*lines, "")))
    (folder / "npm").chmod(0o700)
