"""What tests of several folders are given."""

import pytest

from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.sandbox import SandboxOptions, serve


@pytest.fixture
async def transport():
    """Connections to a sandbox without kubelets."""
    async with await serve(SandboxOptions(kubelets=False)) as running:
        connections = Transport(load_endpoint(master=running.url))
        yield connections
        await connections.aclose()
