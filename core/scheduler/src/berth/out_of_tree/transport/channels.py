"""A gRPC channel to a plugin: a unix socket whose owner is checked first, or TCP with mutual TLS.

Source: docs/protocol.md "Transport".
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio

from berth.config.out_of_tree.sidecars import SidecarSpec, is_unix, socket_path, unprotected
from berth.out_of_tree.errors import NotConnectedError
from berth.out_of_tree.limits import MESSAGE_BYTES, METADATA_BYTES
from berth.out_of_tree.transport.socket_access import held_socket

CHANNEL_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
# gRPC would send the socket's path, which servers on Rust's h2 refuse (grpc/grpc 38142, hyperium/h2 487).
UNIX_OPTIONS = (*CHANNEL_OPTIONS, ("grpc.default_authority", "localhost"))


@asynccontextmanager
async def open_channel(spec: SidecarSpec) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to the plugin at its address, closed at the end.

    Certificates are read anew each time, so that renewed ones are used.

    Raises: NotConnectedError where the socket is not to be trusted, a certificate can't be read, or there is
        none for an address on a network.
    """
    if is_unix(spec.address):
        with held_socket(spec.name, socket_path(spec.address), spec.user) as path:
            async with grpc.aio.insecure_channel(f"unix:{path}", UNIX_OPTIONS) as channel:
                yield channel
        return
    async with _over_tcp(spec) as channel:
        yield channel


def _over_tcp(spec: SidecarSpec) -> grpc.aio.Channel:
    if problem := unprotected(spec.address, spec.tls):
        raise NotConnectedError(spec.name, problem)
    if spec.tls is None:
        return grpc.aio.insecure_channel(spec.address, CHANNEL_OPTIONS)
    try:
        material = [
            Path(file).read_bytes() for file in (spec.tls.ca_file, spec.tls.key_file, spec.tls.cert_file)
        ]
    except OSError as error:
        raise NotConnectedError(spec.name, f"{error.filename}: {error.strerror}") from error
    options = CHANNEL_OPTIONS
    if spec.tls.server_name:
        options = (*options, ("grpc.ssl_target_name_override", spec.tls.server_name))
    return grpc.aio.secure_channel(spec.address, grpc.ssl_channel_credentials(*material), options)
