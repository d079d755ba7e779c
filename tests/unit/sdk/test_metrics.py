"""What a plugin in Python counts, and the pages that show it; the program around it."""

import asyncio
import json
import sys
from contextlib import suppress

import aiohttp
import grpc
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from berth.telemetry.metrics.registry import SchedulerMetrics
from berth_plugin_proto import scheduling_pb2, state_pb2
from berth_sdk import AddressError, Metric, Plugin, flags, main
from berth_sdk.dispatch import Dispatch
from berth_sdk.metrics import SECONDS, Held, Meter
from berth_sdk.serving import Server
from berth_sdk.session import Session
from berth_sdk.testing import Host, make_node, make_pod
from berth_sdk.tracing import Tracing
from tests.failures.reporting import reports
from tests.sockets import served


class Counting(Plugin):
    """Turns one node down, and counts."""

    name = "counting"
    version = "1.2.3"
    broken = False

    def filter(self, _pod, node):
        return "not here" if node.name == "n1" else None

    def metrics(self):
        return [Metric("counting_seen_total", "counter", "Seen.", [({"who": 'a "b"'}, 3), ({}, 0.5)])]

    def state(self):
        if self.broken:
            raise ValueError("no state")
        return {"seen": 3, "where": self.name}


async def page(port, path, method="GET"):
    """A page's status and text."""
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as client, client.request(method, url) as answer:
        return answer.status, await answer.text()


def test_no_name_is_the_scheduler_s_too():
    """One Prometheus reads both: a name with labels of two kinds would mix what they count."""
    names = [
        {family.name for family in text_string_to_metric_families(text)}
        for text in (SchedulerMetrics().text().decode(), Meter("p", "1").text(Held(0, 0, 0, 0)))
    ]

    assert all(names)
    assert set() == set.intersection(*names)


@reports("sdk-page-breaks", log="`page failed`, with a traceback", answer="`500`, with the cause")
async def test_pages(tmp_path, caplog):
    """Calls, verdicts, what is held and the author's own are at /metrics; how things stand is at /state."""
    plugin = Counting()
    server = Server(plugin, f"unix:{tmp_path}/x.sock")
    await server.start()
    port = await server.serve_metrics("127.0.0.1:0")
    host = Host(server.address)
    for i in range(3):
        host.cluster.put_node(make_node(f"n{i}"))
    await host.connect()
    host.once = True
    await host.filter(make_pod("p"))
    status, text = await page(port, "/metrics")
    _, state = await page(port, "/state")
    plugin.broken = True
    pages = [await page(port, "/state"), await page(port, "/other"), await page(port, "/metrics", "POST")]
    await host.close()
    await server.stop(0)

    lines = text.splitlines()
    for line in (
        'berth_plugin_info{plugin="counting",version="1.2.3"} 1.0',
        'berth_plugin_answered_calls_total{code="OK",method="Filter"} 1.0',
        'berth_plugin_call_duration_seconds_count{method="Filter"} 1.0',
        'berth_plugin_node_verdicts_total{verdict="passed"} 2.0',
        'berth_plugin_node_verdicts_total{verdict="rejected"} 1.0',
        'berth_plugin_state_objects{kind="nodes"} 3.0',
        "# TYPE counting_seen_total counter",
        'counting_seen_total{who="a \\"b\\""} 3.0',
        "counting_seen_total 0.5",
    ):
        assert line in lines
    assert (200, {"seen": 3, "where": "counting"}) == (status, json.loads(state))
    assert [(500, "ValueError: no state\n"), (404, "GET /metrics or /state\n")] == pages[:2]
    assert pages[2][0] == 404
    assert "page failed path=/state" in caplog.messages


def test_durations():
    """A call is in each bucket that it fits into."""
    meter = Meter("p", "1")
    for seconds in (SECONDS[0], SECONDS[0] * 1.01, 100):
        meter.answered("Filter", "OK", seconds)
    lines = meter.text(Held(0, 0, 0, 0)).splitlines()

    counts = [line.rsplit(" ", 1)[1] for line in lines if "_bucket" in line]
    assert ["1.0", *["2.0"] * (len(SECONDS) - 1), "3.0"] == counts


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(None, "OK", id="answered"),
        pytest.param(ValueError("x"), "INVALID_ARGUMENT", id="no sense"),
        pytest.param(asyncio.CancelledError(), "CANCELLED", id="the caller left"),
    ],
)
@pytest.mark.parametrize("exporters", [(), (InMemorySpanExporter(),)], ids=["no spans", "spans"])
async def test_codes(error, code, exporters):
    """A call that failed is counted with what the host gets to see."""
    session = Session(Counting())

    async def answer(_session, _request):
        if error:
            raise error

    dispatch = Dispatch(session, Tracing("p", "1", exporters))
    with suppress(ValueError, asyncio.CancelledError):
        await dispatch.call("Filter", answer, scheduling_pb2.FilterRequest(), ())

    counted = f'berth_plugin_answered_calls_total{{code="{code}",method="Filter"}} 1.0\n'
    assert counted in session.meter.text(Held(0, 0, 0, 0))


async def test_refusals(tmp_path):
    """A message of the state stream that makes no sense is counted by its reason."""
    server = Server(Counting(), f"unix:{tmp_path}/x.sock")
    await server.start()

    async def nonsense():
        yield state_pb2.SyncRequest(commit=state_pb2.Commit(generation=1))

    async with grpc.aio.insecure_channel(server.address) as channel:
        sync = channel.stream_stream(
            "/berth.plugin.v1.StateService/Sync",
            request_serializer=state_pb2.SyncRequest.SerializeToString,
            response_deserializer=state_pb2.SyncResponse.FromString,
        )
        answers = [answer async for answer in sync(nonsense())]
    text = server.session.metrics()
    await server.stop(0)

    assert "nack" == answers[-1].WhichOneof("body")
    assert 'berth_plugin_state_refusals_total{reason="OUT_OF_ORDER"} 1.0' in text.splitlines()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:many", "127.0.0.1:70000", "192.0.2.1:1"])
async def test_no_such_address(tmp_path, address):
    """Where pages can't be served, the address is named."""
    server = Server(Counting(), f"unix:{tmp_path}/x.sock")
    with pytest.raises(AddressError, match=f"metrics: {address}: "):
        await server.serve_metrics(address)


PROGRAM = """
import sys
from berth_sdk import flags, main
from tests.unit.sdk.test_metrics import Counting
sys.exit(main(Counting()))
"""


async def test_program(tmp_path):
    """A program serves the plugin and its pages as its flags say, and ends in order when asked to."""
    flags_given = ("--address", f"unix:{tmp_path}/x.sock", "--metrics-address", "127.0.0.1:0", "--grace", "0")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, *flags_given, stderr=asyncio.subprocess.PIPE
    )
    await served(tmp_path / "x.sock", process)
    async for line in process.stderr:
        if b'"serving metrics" port=' in line:
            break
    status, text = await page(int(line.rpartition(b"=")[2]), "/metrics")
    process.terminate()
    await process.communicate()

    assert (200, 0) == (status, process.returncode)
    assert "berth_plugin_info" in text


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        pytest.param((), "no address: give one, or set BERTH_PLUGIN_ADDRESS", id="no address"),
        pytest.param(
            ("--address", "127.0.0.1:0"),
            "127.0.0.1:0: only unix:/path sockets are served without certificates",
            id="without certificates",
        ),
        pytest.param(
            ("--address", "127.0.0.1:0", "--tls-key", "key"),
            "tls-certificate, tls-key and tls-authority go together",
            id="one file of three",
        ),
        pytest.param(
            ("--tls-key", "/none", "--tls-certificate", "/none", "--tls-authority", "/none"),
            "/none: No such file or directory",
            id="no such file",
        ),
    ],
)
def test_cannot_be_served(monkeypatch, capsys, given, complaint):
    """A program that can't serve says why, and its exit code is 2."""
    monkeypatch.delenv("BERTH_PLUGIN_ADDRESS", raising=False)
    options = flags("counting").parse_args(given)

    assert 2 == main(Counting(), options)
    assert f"counting: {complaint}\n" in capsys.readouterr().err
