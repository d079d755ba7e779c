"""Chooses a plugin's transport, as it announced: ttrpc frames, one gRPC stream, or unary gRPC calls.

Source: docs/protocol.md "Transport".
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import msgspec

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.out_of_tree.transport.conversation import Conversation
from berth.out_of_tree.transport.rpc import MESSAGES, UnaryCalls
from berth.out_of_tree.transport.ttrpc import open_ttrpc
from berth_plugin_proto import (
    group_pb2_grpc,
    identity_pb2,
    placement_pb2_grpc,
    queueing_pb2_grpc,
    scheduling_pb2_grpc,
)


class Services(msgspec.Struct, frozen=True):
    """Stubs by service; `run` waits until the transport breaks, and raises the reason."""

    stubs: Mapping[str, Any]
    run: Callable[[], Coroutine[Any, Any, None]] | None = None


@asynccontextmanager
async def open_services(
    spec: SidecarSpec, channel: grpc.aio.Channel, announced: identity_pb2.Capabilities
) -> AsyncIterator[Services]:
    """Open the plugin's services, until the block ends.

    Raises: NotConnectedError where its ttrpc socket is not to be trusted, or not served.
    """
    if announced.HasField("ttrpc_socket"):
        async with open_ttrpc(spec, announced.ttrpc_socket) as connection:
            yield Services({name: connection.service(name) for name in MESSAGES}, connection.run)
        return
    scheduling: Any = scheduling_pb2_grpc.SchedulingServiceStub(channel)
    stubs = {
        "SchedulingService": UnaryCalls(scheduling),
        "PlacementService": UnaryCalls(placement_pb2_grpc.PlacementServiceStub(channel)),
        "GroupService": UnaryCalls(group_pb2_grpc.GroupServiceStub(channel)),
        "QueueingService": UnaryCalls(queueing_pb2_grpc.QueueingServiceStub(channel)),
    }
    if announced.converse:
        conversation = Conversation(scheduling, together=announced.converse_together)
        yield Services({**stubs, "SchedulingService": conversation}, conversation.run)
    else:
        yield Services(stubs)
