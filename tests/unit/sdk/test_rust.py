"""The Rust SDK and the Rust plugins: their own tests, their documentation, and a host in another language."""

import asyncio
import re
import shutil

import pytest

from berth_sdk.testing import make_node, make_pod
from berth_sdk.testing.host import Host
from tests.rust_toolchain import (
    PACKAGES,
    ROOT,
    RUST_SDK,
    build,
    named_apart,
    needs_cargo,
    run_cargo,
    unformatted,
)
from tests.sockets import served

pytestmark = needs_cargo


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_package(package):
    """A package's own tests pass, those in its documentation among them; `make lint` has clippy's checks."""
    done = run_cargo("test", "--locked", "--quiet", folder=package, capture=True)

    assert 0 == done.returncode, done.stdout


def test_format():
    """The Rust files are as rustfmt writes them."""
    assert not unformatted()


def test_readme(tmp_path):
    """The plugin of the README is complete, and its test passes."""
    plugin, test = re.findall(
        r"```rust\n(.*?)```", (RUST_SDK / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text(f"{plugin}\n{test}")
    manifest = (RUST_SDK / "template/Cargo.toml").read_text().replace('path = ".."', f'path = "{RUST_SDK}"')
    (tmp_path / "Cargo.toml").write_text(manifest)
    named_apart(tmp_path, "readme-plugin")
    shutil.copy(RUST_SDK / "template/Cargo.lock", tmp_path)

    done = run_cargo("test", "--quiet", folder=tmp_path, capture=True)

    assert (0, True) == (done.returncode, "1 passed" in done.stdout), done.stdout


async def test_a_host_in_another_language(tmp_path):
    """The template, as a process, answers a host that is written in Python, and goes when it is told to."""
    program = await asyncio.to_thread(build, "hello", tmp_path / "hello", folder=RUST_SDK / "template")
    address = f"unix:{tmp_path / 'hello.sock'}"
    process = await asyncio.create_subprocess_exec(program, "--address", address, "--log-level", "error")
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


async def test_an_address_that_cannot_be_served(tmp_path):
    """A program that can't listen says why, and ends with exit code 2."""
    program = await asyncio.to_thread(build, "hello", tmp_path / "hello", folder=RUST_SDK / "template")
    process = await asyncio.create_subprocess_exec(
        program, "--address", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE
    )

    _, complaint = await process.communicate()

    assert 2 == process.returncode
    assert b"hello: 127.0.0.1:0: only unix:/path sockets are served without certificates\n" == complaint
