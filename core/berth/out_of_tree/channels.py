"""A gRPC channel to a plugin: a unix socket that is looked at first, or TCP with certificates on both sides.

Source: docs/protocol.md "Transport".
"""

from pathlib import Path

import grpc
import grpc.aio

from berth.config.sidecars import SidecarSpec, is_unix, socket_path
from berth.out_of_tree.errors import NotConnectedError
from berth.out_of_tree.socket_access import check_socket

CHANNEL_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


def open_channel(spec: SidecarSpec, address: str) -> grpc.aio.Channel:
    """A channel to the plugin at that address.

    Certificates are read anew each time, so that renewed ones are used.

    Raises: NotConnectedError where the socket is not to be trusted, or a certificate can't be read.
    """
    if is_unix(address):
        path = socket_path(address)
        check_socket(spec.name, path)
        return grpc.aio.insecure_channel(f"unix:{path}", CHANNEL_OPTIONS)
    if spec.tls is None:
        return grpc.aio.insecure_channel(address, CHANNEL_OPTIONS)
    try:
        material = [
            Path(file).read_bytes() for file in (spec.tls.ca_file, spec.tls.key_file, spec.tls.cert_file)
        ]
    except OSError as error:
        raise NotConnectedError(spec.name, f"{error.filename}: {error.strerror}") from error
    options = CHANNEL_OPTIONS
    if spec.tls.server_name:
        options = (*options, ("grpc.ssl_target_name_override", spec.tls.server_name))
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(*material), options)
