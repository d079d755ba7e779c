"""Metrics of a live cluster: metrics.k8s.io on a sandbox, servers that speak Prometheus' API, failures."""

import json
import socket
import time
from base64 import b64encode
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web

from berth.client.authentication.credentials import load_endpoint
from berth.config.descheduling.policy_file import read_policy
from berth.descheduling.load import live
from berth.descheduling.load.live import read_loads
from berth.sandbox import SandboxOptions, serve
from tests.failures.reporting import reports
from tests.node_metrics import KIND, POD_KIND, node_usage, pod_usage
from tests.unit.client.conftest import transport_to, web_server
from tests.unit.descheduling.kit import policy

CPU = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
ANY = {"thresholds": {"MetricResource": 20}, "targetThresholds": {"MetricResource": 50}}
KUBERNETES = {"source": "KubernetesMetrics"}
REFERENCE = {"secretReference": {"namespace": "berth-system", "name": "token"}}


def chosen(args, provider):
    written = policy(("LowNodeUtilization", args), metricsProviders=[provider])
    return read_policy(json.dumps(written).encode(), "policy.yaml")


def by_prometheus(url, **server):
    metrics = {"source": "Prometheus", "prometheus": {"query": "load > 0"}}
    provider = {"source": "Prometheus", "prometheus": {"url": url, **server}}
    return chosen({**ANY, "metricsUtilization": metrics}, provider)


@asynccontextmanager
async def sandbox(tmp_path, *documents):
    """A transport to a sandbox with these objects."""
    kubeconfig = tmp_path / "kubeconfig"
    async with await serve(SandboxOptions()) as served:
        served.write_kubeconfig(kubeconfig)
        served.load(documents)
        async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
            yield transport


async def loaded(transport, wanted):
    """The one load of the policy."""
    (found,) = (await read_loads(transport, wanted, datetime.now(UTC), environ={})).values()
    return found


async def failure(answer):
    """What is said of a Prometheus that answers so, without its address."""
    async with web_server(answer) as url, transport_to(url) as transport:
        found = await loaded(transport, by_prometheus(url))
        assert found.text.startswith(f"Prometheus {url}: ")
        return found.text.partition(f"{url}: ")[2]


def vector(**values):
    result = [{"metric": {"instance": name}, "value": [time.time(), str(v)]} for name, v in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def answering(body, status=200):
    async def answer(request):
        del request
        return web.Response(status=status, body=body) if isinstance(body, bytes) else web.json_response(body)

    return answer


async def test_metrics_server(tmp_path):
    """Nodes' and pods' metrics, in the scheduler's units; older ones than five minutes are none."""
    used = node_usage("n0", 1.5, memory=7), node_usage("n1", 1, age=400)
    async with sandbox(tmp_path, KIND, POD_KIND, *used, pod_usage("p", 0.25, memory=5)) as transport:
        found = await loaded(transport, chosen({**CPU, "metricsUtilization": KUBERNETES}, KUBERNETES))

    assert {"n0": {"cpu": 1500, "memory": 7}} == found.nodes
    assert {"default/p": {"cpu": 250, "memory": 5}} == found.pods


@reports(
    "deschedule-metrics",
    answer="`metrics.k8s.io: the API server does not have it; install metrics-server`, and exit status 3",
)
async def test_without_metrics_server(tmp_path):
    """An API server that does not have the group says what to install."""
    async with sandbox(tmp_path) as transport:
        found = await loaded(transport, chosen({**CPU, "metricsUtilization": KUBERNETES}, KUBERNETES))

    assert "metrics.k8s.io: the API server does not have it; install metrics-server" == found.text


async def test_an_empty_metrics_server(tmp_path):
    """So does one that has no metrics yet."""
    async with sandbox(tmp_path, KIND, POD_KIND) as transport:
        found = await loaded(transport, chosen({**CPU, "metricsUtilization": KUBERNETES}, KUBERNETES))

    assert (
        "metrics.k8s.io: no metrics of the last 300 seconds of any of 0 nodes; see the log of" in found.text
    )


async def test_prometheus():
    """The query is asked as it is written, and each node has a percentage; pods have none."""
    queries = []

    async def answer(request):
        queries.append((request.path, request.query["query"], request.headers.get("Authorization")))
        return web.json_response(vector(**{"n0": 0.5, "n1:9100": 0.25}))

    async with web_server(answer) as url, transport_to(url) as transport:
        found = await loaded(transport, by_prometheus(f"{url}/prefix/"))

    assert [("/prefix/api/v1/query", "load > 0", None)] == queries
    assert {"n0": {"MetricResource": 50}, "n1": {"MetricResource": 25}} == found.nodes
    assert found.pods is None


async def test_the_token_of_a_secret(tmp_path):
    """A Secret's prometheusAuthToken is the bearer token, read anew for each plan."""
    tokens = []

    async def answer(request):
        tokens.append(request.headers["Authorization"])
        return web.json_response(vector(n0=0.5))

    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": "berth-system"},
        "data": {"prometheusAuthToken": b64encode(b"abc\n").decode()},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth-system"}}
    async with web_server(answer) as url, sandbox(tmp_path, namespace, secret) as transport:
        await loaded(transport, by_prometheus(url, authToken=REFERENCE))

    assert ["Bearer abc"] == tokens


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "Secret berth-system/token is not there; create it, with the token as prometheusAuthToken"),
        ({}, "Secret berth-system/token has no token; write it as prometheusAuthToken"),
        ({"prometheusAuthToken": "YQpi"}, "Secret berth-system/token has no token; write it as"),
        ({"prometheusAuthToken": "/w=="}, "Secret berth-system/token has no token; write it as"),
    ],
)
async def test_a_secret_without_a_token(tmp_path, data, complaint):
    """Nothing is asked without the token that the policy names."""
    metadata = {"name": "token", "namespace": "berth-system"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth-system"}}
    documents = [namespace] if data is None else [namespace, secret]
    async with sandbox(tmp_path, *documents) as transport:
        found = await loaded(transport, by_prometheus("http://127.0.0.1:1", authToken=REFERENCE))

    assert found.text.startswith(f"Prometheus http://127.0.0.1:1: {complaint}")


async def test_the_accounts_token_goes_over_tls_alone(tmp_path):
    """The author of a policy names the server: over plain HTTP it is not sent the pod's own token."""
    headers = []

    async def answer(request):
        headers.append(request.headers.get("Authorization"))
        return web.json_response(vector(n0=0.5))

    account = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    account.mkdir(parents=True)
    (account / "token").write_text("secret")
    (account / "ca.crt").write_text("")
    environ = {"CONTAINER_SANDBOX_MOUNT_POINT": str(tmp_path)}
    async with web_server(answer) as url, transport_to(url) as transport:
        await read_loads(transport, by_prometheus(url), datetime.now(UTC), environ=environ)

    assert [None] == headers


@pytest.mark.parametrize(
    ("body", "status", "complaint"),
    [
        (b"starting", 503, "answered 503: starting; correct the url"),
        (b"", 401, "answered 401; name a token by authToken.secretReference"),
        (b"", 302, "answered 302: ; correct the url"),
        (b"<html>", 200, "answered no JSON of an instant query: <html>"),
        (b'{"status":"error","error":"parse error"}', 400, "expected a vector, got parse error"),
        (
            {"status": "success", "data": {"resultType": "matrix", "result": []}},
            200,
            "expected a vector, got m",
        ),
        (vector(), 200, "the query has no sample of any node; try it in Prometheus' own page"),
        (vector(n0=50), 200, "node n0 has 50; let the query give numbers from 0 to 1"),
        (vector(n0=-0.1), 200, "node n0 has -0.1; let the query give numbers from 0 to 1"),
    ],
)
async def test_a_prometheus_that_does_not_say(body, status, complaint):
    """Each failure says whose, what, and what to do."""
    assert (await failure(answering(body, status))).startswith(complaint)


async def test_an_answer_without_end(monkeypatch):
    """An answer of more bytes than any cluster has is given up."""
    monkeypatch.setattr(live, "MAX_BYTES", 1000)

    assert "an answer of more than 1000 bytes; let the query have" in await failure(answering(b" " * 1001))


async def test_an_answer_that_does_not_come(monkeypatch):
    """A server that is silent is given up."""
    monkeypatch.setattr(live, "REQUEST_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with transport_to(url) as transport:
            found = await loaded(transport, by_prometheus(url))

    assert found.text.startswith(f"Prometheus {url}: ")
    assert "; " in found.text


async def test_a_server_that_is_not_there():
    """A refused connection names the server and what to see to."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    async with transport_to(url) as transport:
        found = await loaded(transport, by_prometheus(url))

    assert found.text.endswith("; see that it runs and can be reached from here")
