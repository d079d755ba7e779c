"""A plugin for Berth on grpcio alone: same-label keeps pods on nodes with their own value of a label."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from identity import Identity
from scheduling import Scheduling
from session import Session
from sync import State

from berth.plugin.v1 import identity_pb2_grpc, scheduling_pb2_grpc, state_pb2_grpc

LARGEST_CALL = 64 << 20
"""Calls grow with the cluster, while grpcio takes 4 MiB by default."""
THREADS = 32
"""Each stream and each call that waits for a generation takes one."""


def main() -> None:
    """Serve until the process is asked to end."""
    servicer = health.HealthServicer()
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    session = Session(servicer)
    with session.moved:
        session.changed()
    server = grpc.server(
        ThreadPoolExecutor(THREADS), options=(("grpc.max_receive_message_length", LARGEST_CALL),)
    )
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    identity_pb2_grpc.add_IdentityServiceServicer_to_server(Identity(session), server)
    state_pb2_grpc.add_StateServiceServicer_to_server(State(session), server)
    scheduling_pb2_grpc.add_SchedulingServiceServicer_to_server(Scheduling(session), server)
    os.umask(0o177)  # The socket is closed to other users from its first moment on.
    server.add_insecure_port(os.environ["BERTH_PLUGIN_ADDRESS"])
    # Streams are open for ever, so their ends are not waited for.
    signal.signal(signal.SIGTERM, lambda *_: server.stop(grace=None))
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
