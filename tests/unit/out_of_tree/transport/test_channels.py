"""What a server that is not gRPC's own is sent over a unix socket."""

import asyncio
import json

import grpc
import pytest

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.out_of_tree.transport.channels import open_channel
from tests.node_toolchain import NODE

SERVER = """
const server = require("node:http2").createServer();
server.on("stream", (stream, headers) => {
  console.log(JSON.stringify(headers));
  const unimplemented = {":status": 200, "content-type": "application/grpc", "grpc-status": "12"};
  stream.respond(unimplemented, {endStream: true});
});
server.listen(process.argv[1], () => console.log("{}"));
"""


async def test_the_authority_of_a_unix_socket_is_a_host(tmp_path):
    """Servers that parse it as one refuse a path."""
    tmp_path.chmod(0o700)
    socket = tmp_path / "plugin.sock"
    server = await asyncio.create_subprocess_exec(
        str(NODE), "-e", SERVER, str(socket), stdout=asyncio.subprocess.PIPE
    )
    try:
        await server.stdout.readline()
        socket.chmod(0o600)
        async with open_channel(SidecarSpec("p", f"unix:{socket}")) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary("/berth.plugin.v1.IdentityService/Handshake")(b"")
        headers = json.loads(await server.stdout.readline())
    finally:
        server.kill()
        await server.wait()

    assert grpc.StatusCode.UNIMPLEMENTED is refused.value.code()
    assert "localhost" == headers[":authority"]
