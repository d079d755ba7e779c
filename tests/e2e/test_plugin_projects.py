"""`berth plugin init --sdk`: a project, as an author outside of this repository builds and runs it.

No registry has the SDK: it comes from a checkout's folder, or from what `make dist` builds.
"""

import asyncio
import os
import shutil
import stat
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.conformance.project import LANGUAGES
from tests import java_toolchain
from tests.go_toolchain import ROOT
from tests.node_toolchain import NODE, NPM
from tests.release.dist import UV, built
from tests.release.version import version
from tests.sockets import served

pytestmark = pytest.mark.e2e

NAME = "rack-aware"
NO_JAVA, JVM = java_toolchain.missing(), " ".join(java_toolchain.JVM)


def sdk_of(language):
    """What --sdk is given."""
    match language:
        case "python":
            return ROOT / "plugin-sdk/python"
        case "typescript":
            return built("npm") / f"berth-plugin-sdk-{version()}.tgz"
        case _:
            return built("maven") / "maven"


def programs(folder):
    """A folder with this environment's uv, node and npm, and a mvn that has no SDK in its repository."""
    here, repository, users = folder / "bin", folder / "repository", Path.home() / ".m2/repository"
    here.mkdir()
    repository.mkdir()
    for group in users.glob("*"):
        if group.name != "dev":
            (repository / group.name).symlink_to(group)
    scripts = {
        "uv": f'"{UV}"',
        "node": f'"{NODE}"',
        "npm": f'"{NODE}" "{NPM}"',
        "mvn": f'"{shutil.which("mvn")}" "-Dmaven.repo.local={repository}" "-DargLine={JVM}"',
    }
    for name, command in scripts.items():
        script = here / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return here


@asynccontextmanager
async def shell(command, project, path):
    """The command in the project's folder, ended at the end."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "VIRTUAL_ENV", "BERTH"))
    }
    environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    environment["MAVEN_OPTS"] = JVM
    words = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    process = await asyncio.create_subprocess_shell(
        f"exec {command}", cwd=project, env=environment, start_new_session=True, **words
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


def berth(*arguments):
    """Run the command; gives its output."""
    outcome = CliRunner().invoke(main, ["plugin", *map(str, arguments)])
    assert 0 == outcome.exit_code, outcome.output
    return outcome.output


@pytest.mark.parametrize(
    "language",
    ["python", "typescript", pytest.param("java", marks=pytest.mark.skipif(bool(NO_JAVA), reason=NO_JAVA))],
)
async def test_a_project(tmp_path, language):
    """The commands of its README.md build it, pass its tests and serve a plugin that `verify` passes."""
    project, socket = tmp_path / NAME, tmp_path / "p.sock"
    sdk = await asyncio.to_thread(sdk_of, language)
    berth("init", NAME, "--language", language, "--directory", project, "--sdk", sdk)
    known = LANGUAGES[language]
    said = {"module": known.module(NAME), "address": f"unix:{socket}"}
    build, test, run = (each.format(**said) for each in known.commands)
    assert all(each.format(**said) in (project / "README.md").read_text() for each in known.commands[:2])
    path = programs(tmp_path)

    for command in (build, test):
        async with shell(command, project, path) as process:
            output, _ = await process.communicate()
        assert 0 == process.returncode, output.decode()
    async with shell(run, project, path) as process:
        await served(socket, process)
        found = await asyncio.to_thread(berth, "verify", said["address"], "--many-nodes", "60")

    assert " 0 failed" in found
