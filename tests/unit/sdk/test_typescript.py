"""The TypeScript SDK and its template: their own tests, the README, and the scheduler's host."""

import asyncio
import re

import pytest

from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, PACKAGES, ROOT, install, run_node, run_tests
from tests.sockets import served
from tests.unit.out_of_tree.scripted import Harness, running

HELLO = NODE_SDK / "template/hello.ts"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_package(package):
    """A package's own tests pass."""
    done = run_tests(package)

    assert 0 == done.returncode, done.stdout


def test_readme(tmp_path):
    """The plugin of the README is complete, and its test passes."""
    install()
    readme = (NODE_SDK / "README.md").read_text(encoding="utf-8")
    plugin, test = re.findall(r"```ts\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "team-nodes.ts").write_text(plugin)
    (tmp_path / "team-nodes.test.ts").write_text(test)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")

    done = run_node(FROM_SOURCE, "--test", "team-nodes.test.ts", folder=tmp_path, capture=True)

    assert 0 == done.returncode, done.stdout


async def test_the_scheduler_s_host(tmp_path):
    """The template, as a process, filters for the scheduler's own host, also nodes that came since."""
    socket = tmp_path / "hello.sock"
    process = await started("--address", f"unix:{socket}", "--log-level", "error")
    try:
        await served(socket, process)
        async with running(Harness(socket, name="hello", arguments={"label": "team"})) as harness:
            harness.add_nodes("red", labels={"team": "red"})
            await harness.up()
            first = await harness.filter(harness.pod(labels={"team": "blue"}))
            harness.add_nodes("other", labels={"team": "red"})
            then = await harness.filter(harness.pod("q", labels={"team": "red"}))
    finally:
        process.terminate()
        await process.wait()

    assert [False, False, False, True] == [bool(code) for code in first]
    assert [False] * 5 == [bool(code) for code in then]


async def started(*flags, stderr=None):
    """The template as a process of its own."""
    await asyncio.to_thread(install)
    return await asyncio.create_subprocess_exec(NODE, FROM_SOURCE, HELLO, *flags, stderr=stderr)
