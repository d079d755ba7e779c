"""The Java SDK and the Java plugins: their own tests, documentation and certificates."""

import asyncio
import re
import shutil

import pytest

from berth.config.out_of_tree.sidecars import PluginTls
from berth.conformance import CheckOutcome, VerifyOptions, chosen, verify
from berth.conformance.subject import PluginUnreachableError
from berth.demo.surface import Surface
from tests.java_toolchain import JAVA_SDK, TEMPLATE, install, missing, program, run_mvn
from tests.suite import PATIENCE_SECONDS
from tests.unit.extender.test_tls import self_signed

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def test_modules():
    """The own tests of all modules pass, in one run of Maven; `make lint` looks at their format."""
    install()

    done = run_mvn("test", "--fail-at-end")

    assert 0 == done.returncode, done.stdout


def test_readme(tmp_path):
    """The plugin of the README is complete, and its test passes."""
    install()
    readme = (JAVA_SDK / "README.md").read_text(encoding="utf-8")
    plugin, test = re.findall(r"```java\n(.*?)```", readme, re.DOTALL)
    shutil.copy(TEMPLATE / "pom.xml", tmp_path)
    for kind, name, text in (("main", "TeamNodes", plugin), ("test", "TeamNodesTest", test)):
        folder = tmp_path / f"src/{kind}/java"
        folder.mkdir(parents=True)
        (folder / f"{name}.java").write_text(text)

    done = run_mvn("test", folder=tmp_path)

    assert 0 == done.returncode, done.stdout


async def test_certificates(tmp_path):
    """Over TCP the template answers whom its authority vouches for, and no other."""
    for name in ("host", "plugin", "stranger"):
        certificate, key = self_signed("localhost")
        (tmp_path / f"{name}.crt").write_bytes(certificate)
        (tmp_path / f"{name}.key").write_bytes(key)
    address = f"localhost:{Surface.free().port}"
    names = {"certificate": "plugin.crt", "key": "plugin.key", "authority": "host.crt"}
    flags = (text for flag, name in names.items() for text in (f"--tls-{flag}", tmp_path / name))
    process = await started("--address", address, "--log-level", "error", *flags)

    def options(shown):
        paths = (str(tmp_path / name) for name in ("plugin.crt", f"{shown}.crt", f"{shown}.key"))
        return VerifyOptions(address, tls=PluginTls(*paths))

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await listens(address):
                assert process.returncode is None
                await asyncio.sleep(0.01)
        _, results = await verify(options("host"), chosen(only=["handshake/*"]))
        with pytest.raises(PluginUnreachableError):
            await verify(options("stranger"), chosen(only=["handshake/*"]))
    finally:
        process.terminate()
        await process.wait()

    assert [] == [each for each in results if each.outcome is CheckOutcome.FAIL]


async def listens(address):
    """Whether a connection is accepted there."""
    host, _, port = address.rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def started(*flags, stderr=None):
    """The template as a process of its own."""
    await asyncio.to_thread(install)
    return await asyncio.create_subprocess_exec(*program(TEMPLATE), *flags, stderr=stderr)
