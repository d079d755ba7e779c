"""The pages of the group behind a secure port, and clients of it."""

import socket
import ssl
from contextlib import asynccontextmanager

import aiohttp

from berth.aggregated_api.front_proxy import Trust
from berth.aggregated_api.pages import ExplainPages
from berth.serving.endpoints import Endpoints, SecureServer
from berth.serving.serving_certificate import SelfMade
from tests.unit.aggregated_api.certificates import TestAuthority

POD = "/apis/explain.berth.dev/v1alpha1/namespaces/default/podexplanations/p"
PROXY, CLIENTS = TestAuthority(), TestAuthority("cluster-ca")
TRUST = Trust(front_proxies=(PROXY.pem,), clients=(CLIENTS.pem,), allowed_names=("front-proxy",))
CERTIFICATE = SelfMade(lambda: TRUST.pem)


async def nothing():
    """Do nothing."""


@asynccontextmanager
async def serving(explain, review):
    """A secure port that explains pods, and trusts one front proxy."""
    endpoints = Endpoints(lambda _names: b"", nothing, dict, explanations=ExplainPages(explain).mount)
    listener = socket.create_server(("127.0.0.1", 0))
    server = await SecureServer.start(listener, CERTIFICATE, endpoints, review=review, clients=TRUST.user)
    server.fingerprint = CERTIFICATE.fingerprint
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def client(server, pair=None, folder=None):
    """A client of it that shows a certificate, if it is given one and a folder for its files."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        files = folder / "client.crt", folder / "client.key"
        for file, pem in zip(files, pair, strict=True):
            file.write_bytes(pem)
        context.load_cert_chain(*files)
    connector = aiohttp.TCPConnector(ssl=context, force_close=True)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{server.port}", connector=connector) as session:
        yield session
