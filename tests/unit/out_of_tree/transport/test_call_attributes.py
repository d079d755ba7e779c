"""The spans of calls have OpenTelemetry's attributes, by the names of the installed conventions."""

import asyncio

import grpc
import pytest
from opentelemetry.semconv._incubating.attributes import rpc_attributes
from opentelemetry.semconv.attributes import (
    error_attributes,
    http_attributes,
    server_attributes,
    url_attributes,
)

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.status import Code
from berth.out_of_tree.errors import CallFailedError, LateError, NotConnectedError, ProtocolError
from berth.out_of_tree.extender import request_attributes
from berth.out_of_tree.extender.errors import ReplyError, StatusError, UnansweredError
from berth.out_of_tree.extender.request_attributes import http_outcome, http_request
from berth.out_of_tree.transport import call_attributes
from berth.out_of_tree.transport.call_attributes import PluginEndpoint, rpc_outcome, rpc_request
from berth.out_of_tree.transport.rpc import RpcError
from berth.out_of_tree.transport.traceparent import CallSpan
from berth_plugin_proto import identity_pb2
from tests.unit.telemetry.records import make_record


def caused(error, cause):
    """An error as it is raised `from` another."""
    error.__cause__ = cause
    return error


def test_names_are_the_conventions():
    """Every name that is written out is the one that OpenTelemetry's package has."""
    known = {}
    for package in (rpc_attributes, error_attributes, server_attributes, http_attributes, url_attributes):
        known |= vars(package)
    ours = {
        name: value
        for module in (call_attributes, request_attributes)
        for name, value in vars(module).items()
        if name.isupper() and name.partition("_")[0] in {"RPC", "SERVER", "ERROR", "HTTP", "URL"}
    }

    assert 9 == len(ours)
    assert ours == {name: known[name] for name in ours}


@pytest.mark.parametrize(
    ("address", "ttrpc_socket", "system", "server"),
    [
        ("unix:///run/x.sock", None, "grpc", {"server.address": "/run/x.sock"}),
        ("unix:///run/x.sock", "x.ttrpc", "ttrpc", {"server.address": "/run/x.ttrpc"}),
        ("plugin.example:7443", None, "grpc", {"server.address": "plugin.example", "server.port": 7443}),
        ("[::1]:7443", None, "grpc", {"server.address": "::1", "server.port": 7443}),
    ],
)
def test_where_a_call_goes(address, ttrpc_socket, system, server):
    """A socket is the server's address, that of ttrpc where it is served; a host has its port beside it."""
    announced = identity_pb2.Capabilities(ttrpc_socket=ttrpc_socket)
    expected = {"rpc.system.name": system, "rpc.method": "berth.plugin.v1.SchedulingService/Filter"}

    assert {**expected, **server} == rpc_request(
        PluginEndpoint.of(SidecarSpec("x", address), announced), "Filter"
    )


@pytest.mark.parametrize(
    ("method", "service"),
    [
        ("FilterScore", "SchedulingService"),
        ("ScorePlacements", "PlacementService"),
        ("SortKeys", "QueueingService"),
    ],
)
def test_the_service_of_a_call(method, service):
    """A span names the call with its service's name."""
    assert f"berth.plugin.v1.{service}/{method}" == rpc_request(PluginEndpoint("/x"), method)["rpc.method"]


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (None, "OK", None),
        (LateError("p", "late"), "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
        (
            caused(CallFailedError("p", "x"), RpcError(grpc.StatusCode.UNAVAILABLE, "gone")),
            "UNAVAILABLE",
            "UNAVAILABLE",
        ),
        (ProtocolError("p", "garbled"), "OK", "ProtocolError"),
        (NotConnectedError("p", "away"), None, "NotConnectedError"),
        (asyncio.CancelledError(), "CANCELLED", "CANCELLED"),
        (GeneratorExit(), "CANCELLED", "CANCELLED"),
    ],
)
def test_how_a_call_ended(error, code, kind):
    """The code is the answer's; what failed has a type."""
    outcome = rpc_outcome(error)

    assert (code, kind) == (outcome.get("rpc.response.status_code"), outcome.get("error.type"))


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (None, 200, None),
        (StatusError("no", 503), 503, "503"),
        (ReplyError("no"), 200, "ReplyError"),
        (caused(UnansweredError("no"), ConnectionResetError()), None, "ConnectionResetError"),
    ],
)
def test_how_a_request_to_an_extender_ended(error, code, kind):
    """The status is the answer's; what failed has a type."""
    outcome = http_outcome(error)

    assert (code, kind) == (outcome.get("http.response.status_code"), outcome.get("error.type"))


def test_where_a_request_to_an_extender_goes():
    """The port is that of the scheme where the URL names none; a password in it is left out."""
    assert {
        "http.request.method": "POST",
        "url.full": "https://extender.example/filter",
        "server.address": "extender.example",
        "server.port": 443,
    } == http_request("https://me:secret@extender.example/filter")


def test_failed_call_is_a_failed_stretch_of_the_attempt():
    """The interval has the request's attributes, the outcome's, and the error's text."""
    record = make_record()
    with (
        pytest.raises(LateError),
        CallSpan(
            record, "p Filter", lambda _: True, rpc_request(PluginEndpoint("/x"), "Filter"), rpc_outcome
        ),
    ):
        raise LateError("p", "Filter was not answered in time")
    (call,) = record.intervals

    assert (Code.ERROR, "plugin p: Filter was not answered in time") == (
        call.status.code,
        call.status.message,
    )
    assert ("/x", "DEADLINE_EXCEEDED") == (call.attributes["server.address"], call.attributes["error.type"])
