"""The templates that are not in Python, as processes: asked by a host, and not to be served."""

import asyncio

import pytest

from berth_sdk.testing import make_node, make_pod
from berth_sdk.testing.host import Host
from tests import go_toolchain, java_toolchain, node_toolchain, rust_toolchain
from tests.sockets import served

NEEDS_JAVA = pytest.mark.skipif(bool(java_toolchain.missing()), reason=java_toolchain.missing())


def go(folder):
    """The Go template's command."""
    return [go_toolchain.build(".", folder / "hello", folder=go_toolchain.GO_SDK / "template")]


def rust(folder):
    """The Rust template's command."""
    return [rust_toolchain.build("hello", folder / "hello", folder=rust_toolchain.RUST_SDK / "template")]


def typescript(_):
    """The TypeScript template's command."""
    node_toolchain.install()
    hello = node_toolchain.NODE_SDK / "template/hello.ts"
    return [node_toolchain.NODE, node_toolchain.FROM_SOURCE, hello]


def java(_):
    """The Java template's command."""
    java_toolchain.install()
    return java_toolchain.program(java_toolchain.TEMPLATE)


pytestmark = pytest.mark.parametrize(
    "command",
    [
        go,
        pytest.param(rust, marks=rust_toolchain.needs_cargo),
        typescript,
        pytest.param(java, marks=NEEDS_JAVA),
    ],
)


async def test_a_host_in_another_language(command, tmp_path):
    """It answers a host that is written in Python, and goes when it is asked to."""
    program = await asyncio.to_thread(command, tmp_path)
    address = f"unix:{tmp_path / 'hello.sock'}"
    process = await asyncio.create_subprocess_exec(*program, "--address", address, "--log-level", "error")
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
    assert (0, []) == (code, list(tmp_path.glob("*.sock*")))


async def test_an_address_that_cannot_be_served(command, tmp_path):
    """A program that can't listen says why, and ends with exit code 2."""
    program = await asyncio.to_thread(command, tmp_path)
    process = await asyncio.create_subprocess_exec(
        *program, "--address", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE
    )

    _, complaint = await process.communicate()

    assert 2 == process.returncode
    assert b"hello: 127.0.0.1:0: only unix:/path sockets are served without certificates\n" == complaint
