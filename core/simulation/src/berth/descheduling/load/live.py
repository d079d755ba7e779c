"""Asks metrics-server, through the API server, and Prometheus for the load that a policy goes by.

policy.measured_by() --> KubernetesMetrics --> lists of nodes and pods of metrics.k8s.io --+
                     --> Prometheus -------> one instant query ----------------------------+--> Load
                                                                                           +--> LoadFailure
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from berth.client.api import Api
from berth.client.authentication.service_account import FOLDER
from berth.client.endpoint import Endpoint, FixedAuthorization, parse_url
from berth.client.errors import ClientError, NotFoundError, lacks_rights
from berth.client.resources import Resource
from berth.client.transport import Transport
from berth.client.watching.watch import WatchSource, pages
from berth.config.descheduling.metrics import MetricsUtilization, PrometheusServer, SecretReference
from berth.config.descheduling.metrics_rules import KUBERNETES_METRICS, source_of
from berth.config.descheduling.policy import Policy
from berth.descheduling.load.load import Load, LoadFailure, Loads, measured, sampled
from berth.descheduling.load.readings import (
    MAX_SHOWN,
    ReadingError,
    Sample,
    node_readings,
    pod_readings,
    samples_of,
)

GROUP: Final = "metrics.k8s.io"
NODE_METRICS: Final = Resource(GROUP, "v1beta1", "nodes", namespaced=False)
POD_METRICS: Final = Resource(GROUP, "v1beta1", "pods", namespaced=True)
SECRETS: Final = Resource("", "v1", "secrets", namespaced=True)
TOKEN_KEY: Final = "prometheusAuthToken"  # noqa: S105 (the name of a key)
"""Source: pkg/descheduler/descheduler.go (descheduler v0.36)."""
NODE_LABEL: Final = "instance"
MAX_BYTES: Final = 64 << 20
REQUEST_SECONDS: Final = 30.0


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, bytes] = {}


class _SourceError(Exception):
    """What is wrong with a source, and a remedy."""


async def read_loads(
    transport: Transport, policy: Policy, now: datetime, *, environ: Mapping[str, str] = os.environ
) -> Loads:
    """The load of each source that the policy's strategies go by; what fails is told by its LoadFailure."""
    found: dict[MetricsUtilization, Load | LoadFailure] = {}
    for chosen in sorted(policy.measured_by(), key=repr):
        if source_of(chosen) == KUBERNETES_METRICS:
            found[chosen] = await _from_metrics_server(transport, now)
        else:
            assert policy.prometheus is not None, "a policy without it is refused"
            found[chosen] = await _from_prometheus(transport, policy.prometheus, chosen.query, now, environ)
    return found


async def _from_metrics_server(transport: Transport, now: datetime) -> Load | LoadFailure:
    try:
        nodes = node_readings(await _items(transport, NODE_METRICS))
        pods = pod_readings(await _items(transport, POD_METRICS))
    except NotFoundError:
        return LoadFailure(f"{GROUP}: the API server does not have it; install metrics-server")
    except ClientError as error:
        allow = f"allow the account to list nodes and pods of {GROUP}"
        remedy = allow if lacks_rights(error) else f"see `kubectl get apiservice v1beta1.{GROUP}`"
        return LoadFailure(f"{GROUP}: {error}; {remedy}")
    return measured(GROUP, nodes, pods, now)


async def _items(transport: Transport, resource: Resource) -> list[bytes]:
    found: list[bytes] = []
    async with aclosing(pages(transport, WatchSource(resource))) as listed:
        async for page in listed:
            found += map(bytes, page.items or ())
    return found


async def _from_prometheus(
    cluster: Transport, server: PrometheusServer, query: str, now: datetime, environ: Mapping[str, str]
) -> Load | LoadFailure:
    source = f"Prometheus {server.url}"
    try:
        token = await _token(cluster, server.token_secret)
        endpoint = await asyncio.to_thread(_endpoint, server, token, environ)
        samples = await _asked(endpoint, query)
    except (_SourceError, ReadingError) as error:
        return LoadFailure(f"{source}: {error}")
    except ClientError as error:
        return LoadFailure(f"{source}: {error}; see that it runs and can be reached from here")
    return sampled(source, samples, now)


async def _asked(endpoint: Endpoint, query: str) -> dict[str, Sample]:
    """The samples of an instant query. Raises: ClientError, ReadingError, _SourceError."""
    transport = Transport(endpoint, max_connections=1, request_seconds=REQUEST_SECONDS)
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            stream = await transport.stream("/api/v1/query", query={"query": query})
            body = bytearray()
            while piece := await stream.read():
                body += piece
                if len(body) > MAX_BYTES:
                    raise _SourceError(
                        f"an answer of more than {MAX_BYTES} bytes; let the query have a sample a node"
                    )
    except TimeoutError:
        raise _SourceError(f"no whole answer in {REQUEST_SECONDS:g} seconds; simplify the query") from None
    finally:
        await transport.aclose()
    if stream.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise _SourceError(f"answered {stream.status}; name a token by authToken.secretReference")
    if stream.status != HTTPStatus.OK and not body.startswith(b'{"status":"error"'):
        said = bytes(body[:MAX_SHOWN]).decode(errors="replace")
        raise _SourceError(f"answered {stream.status}: {said}; correct the url")
    return samples_of(bytes(body), NODE_LABEL)


async def _token(cluster: Transport, reference: SecretReference | None) -> str | None:
    """The token of the Secret; None where none is named. Raises: ClientError, _SourceError."""
    if reference is None:
        return None
    named = f"Secret {reference.namespace}/{reference.name}"
    try:
        secret = await Api(cluster).get(SECRETS, reference.namespace, reference.name)
        token = msgspec.json.decode(secret, type=_Secret).data.get(TOKEN_KEY, b"").decode().strip()
    except NotFoundError:
        raise _SourceError(f"{named} is not there; create it, with the token as {TOKEN_KEY}") from None
    except ClientError as error:
        remedy = "; allow the account to get it" if lacks_rights(error) else "; try again"
        raise _SourceError(f"{named}: {error}{remedy}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        token = ""
    if not token or not token.isprintable() or not token.isascii():
        raise _SourceError(f"{named} has no token; write it as {TOKEN_KEY}")
    return token


def _endpoint(server: PrometheusServer, token: str | None, environ: Mapping[str, str]) -> Endpoint:
    """Where Prometheus is, and as whom it is asked.

    In a pod, without a Secret, that is its service account, and only over TLS to a server that the cluster's
    own authority vouches for: the author of a policy may name any server, and the account may evict pods.
    """
    address, prefix = parse_url(server.url, file="", field_name="metricsProviders.prometheus.url")
    root = environ.get("CONTAINER_SANDBOX_MOUNT_POINT", "").rstrip("/")
    authority, account = Path(f"{root}{FOLDER}/ca.crt"), Path(f"{root}{FOLDER}/token")
    context = None
    if address.scheme == "https":
        in_pod = authority.exists()
        own = in_pod and token is None
        context = ssl.create_default_context(cafile=str(authority) if own else None)
        if in_pod and not own:
            context.load_verify_locations(cafile=str(authority))
        if own and account.exists():
            token = account.read_text(encoding="ascii").strip()
    authorization = FixedAuthorization(f"Bearer {token}" if token else "")
    return Endpoint(address, prefix, context, authorization=authorization)
