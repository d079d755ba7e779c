"""A plugin straight on tonic that has the calls of the released contract, each written out, and no other."""

import asyncio
import re
import shutil

import msgspec
import pytest

from berth.conformance import CHECKS, verify
from tests.proto_check import BASELINE, services
from tests.rust_toolchain import build, needs_cargo
from tests.unit.conformance.broken import failed
from tests.unit.conformance.running import process
from tests.without_sdk import PROTO, WITHOUT_SDK

SERVICE = "berth.plugin.v1.SchedulingService"
UNSERVED = """
    async fn {method}(
        &self,
        _: Request<crate::pb::{call}Request>,
    ) -> Result<Response<crate::pb::{call}Response>, Status> {{
        Err(Status::unimplemented("{call}"))
    }}
"""
SYNC = "    type SyncStream = BoxStream<SyncResponse>;\n\n"
CONVERSE = """
    type ConverseStream = tokio_stream::Empty<Result<crate::pb::ConverseResponse, Status>>;

    async fn converse(
        &self,
        _: Request<tonic::Streaming<crate::pb::ConverseRequest>>,
    ) -> Result<Response<Self::ConverseStream>, Status> {
        Err(Status::unimplemented("Converse"))
    }
"""


def snake_case(call):
    """The method of a call, as prost spells it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", call).lower()


def write_out(sources):
    """Give the plugin's modules a method for each call of the released contract."""
    calls = services(BASELINE.read_bytes())[SERVICE] - {"Converse", "Filter", "Score", "FilterScore"}
    methods = "".join(UNSERVED.format(call=call, method=snake_case(call)) for call in sorted(calls))
    insert(sources / "scheduling.rs", "impl SchedulingService for Scheduling {\n", CONVERSE + methods)
    insert(sources / "sync.rs", "impl StateService for Sync {\n", SYNC)


def insert(path, head, text):
    """Put the text behind that line."""
    source = path.read_text()
    assert head in source
    path.write_text(source.replace(head, head + text))


def one_more_call(proto):
    """A copy of the protocol in which SchedulingService has one more call."""
    head = "service SchedulingService {"
    return proto.replace(head, f"{head}\n  rpc Undo(PreEnqueueRequest) returns (PreEnqueueResponse);")


def plugin(tmp_path, name, protocol):
    """The plugin's program, against the protocol in that folder; no other test builds one of that name.

    Cargo takes packages of one name for one package, and a build for up to date if it began after the other's
    files were written. Raises: RuntimeError.
    """
    copy = tmp_path / "plugin"
    shutil.copytree(WITHOUT_SDK / "rust", copy, ignore=shutil.ignore_patterns("target"))
    stubs = (copy / "build.rs").read_text().replace("        .generate_default_stubs(true)\n", "")
    assert "default_stubs" not in stubs
    (copy / "build.rs").write_text(stubs.replace('"../../../proto"', f'"{protocol}"'))
    write_out(copy / "src")
    for manifest in (copy / "Cargo.toml", copy / "Cargo.lock"):
        manifest.write_text(manifest.read_text().replace('name = "same-label"', f'name = "{name}"'))
    return build(name, tmp_path / name, folder=copy)


@needs_cargo
async def test_the_protocol_of_today_runs_a_plugin_of_the_released_contract(tmp_path):
    """It compiles without a method for what came later, such as placements, and is refused nowhere."""
    program = await asyncio.to_thread(plugin, tmp_path, "released-contract", PROTO)

    async with process(str(program)) as options:
        given = msgspec.structs.replace(options, arguments={"label": "team"}, trace_file=None)
        _, results = await verify(given, CHECKS.values())

    assert {} == failed({each.check.id: each for each in results})


@needs_cargo
def test_one_more_call_would_break_it(tmp_path):
    """That is why a call that is added to a released service is refused."""
    protocol = tmp_path / "proto"
    shutil.copytree(PROTO, protocol, ignore=shutil.ignore_patterns("python"))
    file = protocol / "berth/plugin/v1/scheduling.proto"
    file.write_text(one_more_call(file.read_text()))

    with pytest.raises(RuntimeError, match=r"missing: `undo`"):
        plugin(tmp_path, "one-more-call", protocol)
