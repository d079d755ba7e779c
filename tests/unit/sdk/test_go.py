"""The Go SDK and the Go plugins: their own tests, their documentation, and a host in another language."""

import asyncio
import re
import shutil

import pytest

from berth_sdk.testing import make_node, make_pod
from berth_sdk.testing.host import Host
from tests.go_toolchain import GO_SDK, MODULES, ROOT, build, run_go, unformatted
from tests.sockets import served


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module(module):
    """A module's own tests pass, in any order; `make lint` vets them."""
    done = run_go("test", "-vet=off", "-shuffle=on", "-timeout=120s", "./...", folder=module, capture=True)

    assert 0 == done.returncode, done.stdout


def test_format():
    """The Go files are as gofmt writes them."""
    assert not unformatted()


def test_readme(tmp_path):
    """The plugin of the README is complete, and its test passes."""
    readme = (GO_SDK / "README.md").read_text(encoding="utf-8")
    plugin, test = re.findall(r"```go\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "main.go").write_text(plugin)
    (tmp_path / "main_test.go").write_text(test)
    for name in ("go.mod", "go.sum"):
        shutil.copy(GO_SDK / "template" / name, tmp_path)
    replaced = run_go("mod", "edit", f"-replace=berth.dev/plugin-sdk/go={GO_SDK}", folder=tmp_path)

    vetted = run_go("vet", "./...", folder=tmp_path, capture=True)
    done = run_go("test", "-vet=off", "./...", folder=tmp_path, capture=True)

    assert (0, 0, 0) == (replaced.returncode, vetted.returncode, done.returncode), vetted.stdout + done.stdout


async def test_a_host_in_another_language(tmp_path):
    """The template, as a process, answers a host that is written in Python, and goes when it is told to."""
    program = build(".", tmp_path / "hello", folder=GO_SDK / "template")
    address = f"unix:{tmp_path / 'hello.sock'}"
    process = await asyncio.create_subprocess_exec(program, "-address", address, "-log-level", "error")
    host = Host(address)
    try:
        await served(tmp_path / "hello.sock", process)
        host.cluster.put_node(make_node("blue", labels={"team": "blue"}))
        host.cluster.put_node(make_node("red", labels={"team": "red"}))
        introduction = await host.connect({"label": "team"})
        rejections, scores = await host.filter_score(make_pod("p", labels={"team": "blue"}))
    finally:
        await host.close()
        process.terminate()
        code = await process.wait()

    assert ("hello", ["red"], {"blue": 100}) == (introduction.name, list(rejections.nodes), scores)
    assert 0 == code


async def test_an_address_that_cannot_be_served(tmp_path):
    """A program that can't listen says why, and ends with exit code 2."""
    program = build(".", tmp_path / "hello", folder=GO_SDK / "template")
    process = await asyncio.create_subprocess_exec(
        program, "-address", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE
    )

    _, complaint = await process.communicate()

    assert 2 == process.returncode
    assert b"hello: 127.0.0.1:0: only unix:/path sockets are served without certificates\n" == complaint
