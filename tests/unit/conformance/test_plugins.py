"""The plugins of this repository keep the protocol, as processes of their own."""

import asyncio
import json
import sys

import msgspec
import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.conformance import CHECKS, VerifyOptions, verify
from berth_sdk.serving import Server
from tests.go_toolchain import GO_SDK, ROOT, build
from tests.java_toolchain import JAVA_SDK, every_point, missing
from tests.java_toolchain import install as install_java
from tests.java_toolchain import program as java_program
from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, install
from tests.rust_toolchain import RUST_SDK, build_example, needs_cargo
from tests.rust_toolchain import build as build_rust
from tests.unit.conformance.broken import Fault, failed, served
from tests.unit.conformance.every_fault import FAULTS
from tests.unit.conformance.running import process
from tests.unit.extender.webhook import Webhook, serving
from tests.unit.test_readme import first_plugin
from tests.without_sdk import PROGRAMS, WITHOUT_SDK

PLUGINS = ROOT / "out-of-tree-plugins"
PYTHON = {
    ROOT / "plugin-sdk/python/template": (str(ROOT / "plugin-sdk/python/template/hello.py"),),
    PLUGINS / "queues": ("-m", "berth_queues"),
    PLUGINS / "gpu-share": ("-m", "berth_gpu_share"),
}
GO = (GO_SDK / "template", PLUGINS / "coscheduling", PLUGINS / "rack-aware")
RUST = {RUST_SDK / "template": "hello", PLUGINS / "numa-aware": "numa-aware"}
TYPESCRIPT = {NODE_SDK / "template": "hello.ts", PLUGINS / "load-aware": "src/main.ts"}
JAVA = (JAVA_SDK / "template", PLUGINS / "data-locality")
ZONES = GO_SDK / "internal/zones"
"""Orders the queue and places pod groups; the other SDKs have the same among their examples and tests."""
HTTP_EXTENDER = PLUGINS / "http-extender"
LINKS_TO_TEMPLATES = PLUGINS / "hello"


def name_of(path):
    """A path in this repository, as a test's id."""
    return str(path.relative_to(ROOT))


def test_all():
    """Every template and every plugin in this repository is put to the kit."""
    plugins = {*ROOT.glob("plugin-sdk/*/template"), *PLUGINS.iterdir(), *WITHOUT_SDK.iterdir()}
    verified = {*PYTHON, *GO, *RUST, *TYPESCRIPT, *JAVA, HTTP_EXTENDER, *PROGRAMS}

    assert {each for each in plugins if each.is_dir()} - {LINKS_TO_TEMPLATES, WITHOUT_SDK} == verified


@pytest.mark.parametrize("folder", PYTHON, ids=name_of)
async def test_python(folder):
    """The Python SDK's template and the plugins in Python pass every check."""
    async with process(sys.executable, *PYTHON[folder]) as options:
        _, results = await verify(msgspec.structs.replace(options, stop=None), CHECKS.values())

    assert {} == failed({each.check.id: each for each in results})


async def test_http_extender():
    """The plugin http-extender passes every check while it asks an extender, too."""
    webhook = Webhook(
        filter=lambda sent: {
            "NodeNames": [name for name in sent["NodeNames"] if sum(name.encode()) % 2],
            "FailedNodes": dict.fromkeys(sent["NodeNames"], "even"),
        },
        prioritize=lambda sent: [{"Host": name, "Score": len(name) % 10} for name in sent["NodeNames"]],
        bind={},
    )
    async with serving(webhook), process(sys.executable, "-m", "berth_http_extender") as options:
        arguments = {"urlPrefix": webhook.url, "nodeCacheCapable": True}
        arguments |= {f"{verb}Verb": verb for verb in webhook.replies}
        _, results = await verify(
            msgspec.structs.replace(options, stop=None, arguments=arguments), CHECKS.values()
        )

    assert {} == failed({each.check.id: each for each in results})
    assert set(webhook.replies) == {verb for verb, _ in webhook.requests}


@pytest.mark.parametrize("folder", [*GO, ZONES], ids=name_of)
async def test_go(tmp_path, folder):
    """The Go SDK's template, the plugin in Go and one that places groups pass every check, and end."""
    program = build(".", tmp_path / "plugin", folder=folder)

    async with process(str(program)) as options:
        _, results = await verify(options, CHECKS.values())

    assert {} == failed({each.check.id: each for each in results})


@needs_cargo
@pytest.mark.parametrize("folder", [*RUST, RUST_SDK], ids=name_of)
async def test_rust(tmp_path, folder):
    """The Rust SDK's template, the plugin in Rust and one that places groups pass every check, and end."""
    if folder == RUST_SDK:
        program = await asyncio.to_thread(build_example, "zones", tmp_path / "zones", release=False)
    else:
        program = await asyncio.to_thread(build_rust, RUST[folder], tmp_path / RUST[folder], folder=folder)

    async with process(str(program)) as options:
        _, results = await verify(options, CHECKS.values())

    assert {} == failed({each.check.id: each for each in results})


@pytest.mark.parametrize(
    "file", [*(folder / name for folder, name in TYPESCRIPT.items()), NODE_SDK / "test/zones.ts"], ids=name_of
)
async def test_typescript(file):
    """The TypeScript SDK's template, the plugin in TypeScript and one for groups pass every check."""
    await asyncio.to_thread(install)

    async with process(str(NODE), FROM_SOURCE, str(file)) as options:
        _, results = await verify(options, CHECKS.values())

    assert {} == failed({each.check.id: each for each in results})


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("folder", [*JAVA, JAVA_SDK], ids=name_of)
async def test_java(folder):
    """The Java SDK's template, the plugin in Java and one with every point pass every check, and end."""
    await asyncio.to_thread(install_java)

    async with process(*(every_point() if folder == JAVA_SDK else java_program(folder))) as options:
        _, results = await verify(options, CHECKS.values())

    assert {} == failed({each.check.id: each for each in results})


async def test_readme(tmp_path):
    """The README's first plugin passes every check."""
    server = Server(first_plugin(), f"unix:{tmp_path / 'p.sock'}")
    await server.start()
    try:
        _, results = await verify(VerifyOptions(server.address, many_nodes=100), CHECKS.values())
    finally:
        await server.stop(0)

    assert {} == failed({each.check.id: each for each in results})


async def run(*arguments):
    """The command, beside the plugin that this process serves."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["plugin", "verify", *arguments])


@pytest.mark.parametrize(("name", "code"), [(None, 0), ("handshake/name", 1)])
async def test_exit_code(name, code):
    """The command's exit code says whether a check failed, its JSON which and why."""
    async with served(Fault() if name is None else FAULTS[name]) as options:
        outcome = await run(options.address, "--only", "handshake/*", "--output", "json")
    report = json.loads(outcome.output)

    assert code == outcome.exit_code
    assert [name] * code == [each["id"] for each in report["checks"] if each["outcome"] == "fail"]
    assert all("DNS label" in each["text"] for each in report["checks"] if each["outcome"] == "fail")


async def test_lines():
    """A failure says what was expected, what came, and where the protocol says so."""
    async with served(FAULTS["handshake/name"]) as options:
        outcome = await run(options.address, "--only", "handshake/name")

    assert [
        "FAIL  handshake/name                        the name is a DNS label",
        "      expected a DNS label, came 'Not a label'",
        "      docs/protocol.md, 'Order of calls'",
        "Not a label 1.2.3: 0 passed, 1 failed, 0 skipped",
    ] == outcome.output.splitlines()


NODES = """
apiVersion: v1
kind: List
items:
- {kind: Node, metadata: {name: given, labels: {team: green}}, spec: {}, status: {allocatable: {cpu: "8"}}}
"""
PODS = """
kind: Pod
metadata: {name: given, labels: {team: green}}
spec: {containers: [{name: main, image: image}]}
"""


async def test_given_objects(tmp_path):
    """Pods and nodes that the user gives are shown and asked about."""
    nodes, pods = tmp_path / "nodes.yaml", tmp_path / "pods.yaml"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    seen = set()

    async def call(server, name, request, proceed):
        if name == "Filter":
            seen.add((request.call.pod.name, server.mirror.nodes[0].name))
        return await proceed(request)

    async with served(Fault(call)) as options:
        outcome = await run(
            options.address, "--only", "filter/one*", "--nodes", str(nodes), "--pods", str(pods)
        )

    assert "1 passed, 0 failed, 0 skipped" in outcome.output
    assert ("given", "given") in seen


async def test_what_is_no_object(tmp_path):
    """A file of anything else is refused by name, with what to write."""
    file = tmp_path / "pods.yaml"
    file.write_text("kind: Pod")

    outcome = await run("unix:/nowhere/p.sock", "--pods", str(file))

    assert 2 == outcome.exit_code
    assert f"{file}: an object lacks metadata.name" in outcome.output
