"""How large an object may be on a real API server, which the rows of hostile input are made by."""

import json

import pytest

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import ClientError
from berth.client.resources import PODS
from berth.client.transport import Transport
from tests.e2e.api_servers import api_server_called
from tests.e2e.test_real_control_plane import started
from tests.hostile.arena import pod
from tests.hostile.test_shapes_of_pods import pod_affinity

pytestmark = pytest.mark.e2e

MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    """That of a real API server."""
    path = tmp_path_factory.mktemp("real") / "kubeconfig"
    with started(api_server_called("real").command(path), path):
        yield path


@pytest.fixture
async def api(kubeconfig):
    transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=2)
    yield Api(transport)
    await transport.aclose()


def written(document):
    return json.dumps(document, separators=(",", ":")).encode()


async def test_fields_by_name_take_the_request_limit(api):
    """Terms are half as long in etcd: 3 MiB of JSON with 34,000 of them are taken."""
    body = written(pod("terms", **pod_affinity(34_000)))

    await api.create(PODS, "default", body)

    assert 2.8 * MEBIBYTE < len(body) < 3 * MEBIBYTE
    with pytest.raises(ClientError, match="limit is 3145728"):
        await api.create(PODS, "default", written(pod("more", **pod_affinity(36_000))))


async def test_texts_take_the_limit_of_etcd(api):
    """A text is as long there as it is written."""

    def said(size):
        return pod(f"text-{size}", container={"env": [{"name": "TEXT", "value": "x" * size}]})

    await api.create(PODS, "default", written(said(int(1.4 * MEBIBYTE))))

    with pytest.raises(ClientError, match="request is too large"):
        await api.create(PODS, "default", written(said(int(1.7 * MEBIBYTE))))
