"""A server of simulations on a socket of its own, its clients, and objects as an autoscaler writes them."""

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.framework.clock import SYSTEM_CLOCK
from berth.sandbox import schemas
from berth.sandbox.bodies.protobuf_fields import FIELDS
from berth.simulation.reading.inputs import ClusterInput, read_objects
from berth.simulation.running.options import SimulationOptions
from berth.simulation_service.expander import Expander
from berth.simulation_service.forks import Forks
from berth.simulation_service.limits import ServiceLimits
from berth.simulation_service.queries import Queries
from berth.simulation_service.server import serve
from berth.simulation_service.service import SimulationService
from berth_expander_proto import expander_pb2, expander_pb2_grpc
from berth_simulation_proto import simulation_pb2_grpc


@dataclass
class FakeClock:
    """A clock that stands still until it is set."""

    seconds: float = 1000.0

    def wall(self):
        return self.seconds

    def monotonic(self):
        return self.seconds

    def cpu(self):
        return self.seconds


@dataclass
class Served:
    """A server at work: its parts, and a client's stubs."""

    service: SimulationService
    forks: Forks
    queries: Queries
    simulation: Any
    expander: Any
    address: str


def cluster_of(*documents):
    """The cluster of these objects."""
    return read_objects([json.dumps(each).encode() for each in documents], "cluster")


@asynccontextmanager
async def served(cluster=None, limits=None, clock=SYSTEM_CLOCK, base=None, gates=()) -> AsyncIterator[Served]:
    """A server that follows this cluster, on a unix socket, with these feature gates."""
    there = ClusterInput() if cluster is None else cluster
    limits = limits or ServiceLimits()
    options = SimulationOptions(load(None, gates=FeatureGates(dict.fromkeys(gates, True))))
    queries, forks = Queries(limits, clock), Forks(limits, clock)
    follow = base or (lambda: there)
    service = SimulationService(options, follow, forks, queries, limits)
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        expander = Expander(options, follow, queries, limits)
        server, address = await serve(f"unix://{folder}/s.sock", None, service, expander, limits)
        try:
            async with grpc.aio.insecure_channel(address) as channel:
                yield Served(
                    service,
                    forks,
                    queries,
                    simulation_pb2_grpc.SimulationServiceStub(channel),
                    expander_pb2_grpc.ExpanderStub(channel),
                    address,
                )
        finally:
            queries.close()
            await server.stop(None)


def written(document):
    """The object as JSON."""
    return json.dumps(document).encode()


def options_request(options, nodes, *, as_bytes=True):
    """A request of the autoscaler; `options` are (group, count, pods), and the fields older ones or newer."""
    pod_field, node_field = ("podBytes", "nodeBytesMap") if as_bytes else ("pod", "nodeMap")
    return expander_pb2.BestOptionsRequest(
        options=[
            expander_pb2.Option(
                nodeGroupId=group,
                nodeCount=count,
                debug="a test",
                **{pod_field: [wire(each) for each in pods]},
            )
            for group, count, pods in options
        ],
        **{node_field: {group: wire(each) for group, each in nodes.items()}},
    )


def groups(response):
    """The node groups of an answer."""
    return [option.nodeGroupId for option in response.options]


def wire(document):
    """The object as protobuf, without an envelope; test_autoscaler.py has Go write it."""
    fields = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    return _message(fields, f"io.k8s.api.core.v1.{document['kind']}")


def _message(document, name):
    properties = schemas.definitions()[name].get("properties", {})
    return _of_fields(document, FIELDS[name], properties)


def _of_fields(document, fields, properties):
    numbers = {key: number for number, key in fields.names.items()}
    made = b"".join(
        _field(numbers[key], value, properties[key]) for key, value in document.items() if key in numbers
    )
    for number, inlined in fields.inline.items():
        made += _bytes(number, _of_fields(document, FIELDS[inlined], properties))
    return made


def _field(number, value, schema):
    resolved = schemas.resolve(schema)
    if isinstance(value, list):
        return b"".join(_field(number, each, resolved["items"]) for each in value)
    if isinstance(value, bool | int) and schemas.ref_name(schema) is None:
        return _varint(number << 3) + _varint(int(value))
    if isinstance(value, dict) and "additionalProperties" in resolved:
        inner = resolved["additionalProperties"]
        return b"".join(
            _bytes(number, _bytes(1, key.encode()) + _field(2, each, inner)) for key, each in value.items()
        )
    return _bytes(number, _value(value, schema))


def _value(value, schema):
    name = schemas.ref_name(schema)
    if name == schemas.QUANTITY:
        return _bytes(1, str(value).encode())
    return _message(value, name) if isinstance(value, dict) else value.encode()


def _bytes(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value):
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])
