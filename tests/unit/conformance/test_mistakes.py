"""Plugins that are wrong in a usual way, as processes of their own, put to `berth plugin verify`."""

import asyncio
import json
import sys

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from tests.go_toolchain import GO_SDK, build
from tests.java_toolchain import install as install_java
from tests.java_toolchain import missing as missing_for_java
from tests.java_toolchain import mistakes as java_mistakes
from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, install
from tests.rust_toolchain import build_example, needs_cargo
from tests.unit.conformance.mistakes import MISTAKES
from tests.unit.conformance.running import process

FOUND = {
    "too-short": ("score/answer", "an entry for each of the 6 nodes", "expected 6 integers"),
    "asked-only": (
        "score/candidates",
        "an answer about 3 of 6 nodes, with an entry for each of the 6 nodes, asked about or not",
        "expected 6 integers",
    ),
    "negative": ("sync/pod-stages", "scores from -1 to 0 without normalization: 0 to 100 is the range"),
    "keeps-state": ("score/deterministic", "no state may be kept by Score"),
    "order-matters": ("score/order", "as before other pods were asked about: answers depend on no order"),
    "unchecked": (
        "configure/unknown-argument",
        'took {"noSuchArgument":{"a":1}} without a word: arguments are not checked',
    ),
}


async def verified(*command, **environment):
    """The report of the command on a plugin in a process of its own, without samples."""
    async with process(*command, **environment) as options:
        arguments = ["plugin", "verify", options.address, "--many-nodes", "60", "--output", "json"]
        outcome = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    assert 1 == outcome.exit_code, outcome.output
    return {
        each["id"]: each["text"] for each in json.loads(outcome.output)["checks"] if each["outcome"] == "fail"
    }


def test_each():
    """Each usual mistake is looked for."""
    assert set(MISTAKES) == set(FOUND)


@pytest.mark.parametrize("name", MISTAKES)
async def test_python(name):
    """A plugin with a usual mistake fails, with words that name it."""
    failures = await verified(sys.executable, "-m", "tests.unit.conformance.mistakes", name)
    check, *words = FOUND[name]

    assert [] == [each for each in words if each not in failures.get(check, "")], failures


def assert_found(name, failures):
    """The check of that mistake failed, with the words that every SDK's plugin gets."""
    check, words, *_ = FOUND[name]
    assert words in failures.get(check, ""), failures


@pytest.fixture(scope="module")
def in_go(tmp_path_factory):
    """The program in Go with each of the mistakes."""
    return build(".", tmp_path_factory.mktemp("go") / "plugin", folder=GO_SDK / "internal/mistakes")


@pytest.mark.parametrize("name", MISTAKES)
async def test_go(in_go, name):
    """A plugin in Go with the same mistake fails the same check."""
    failures = await verified(str(in_go), MISTAKE=name)

    assert_found(name, failures)


@pytest.fixture(scope="module")
def in_rust(tmp_path_factory):
    """The program in Rust with each of the mistakes."""
    return build_example("mistakes", tmp_path_factory.mktemp("rust") / "mistakes", release=False)


@needs_cargo
@pytest.mark.parametrize("name", sorted(FOUND.keys() - {"unchecked"}))
async def test_rust(in_rust, name):
    """So does one in Rust, whose SDK refuses arguments that nothing reads."""
    assert_found(name, await verified(str(in_rust), MISTAKE=name))


@pytest.mark.parametrize("name", MISTAKES)
async def test_typescript(name):
    """So does one in TypeScript."""
    await asyncio.to_thread(install)
    program = (str(NODE), FROM_SOURCE, str(NODE_SDK / "test/mistakes.ts"))

    assert_found(name, await verified(*program, MISTAKE=name))


@pytest.mark.skipif(bool(missing_for_java()), reason=missing_for_java())
@pytest.mark.parametrize("name", sorted(FOUND.keys() - {"unchecked"}))
async def test_java(name):
    """So does one in Java, whose SDK refuses arguments that no record names."""
    await asyncio.to_thread(install_java)

    assert_found(name, await verified(*java_mistakes(), MISTAKE=name))
