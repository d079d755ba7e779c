"""The HTTPS endpoints of a scheduler process: health, metrics, the effective configuration.

The process starts it before anything else runs, because a standby answers too. connections.py accepts,
gate.py lets requests through; the answers by path are here. What may take long is made in a worker thread,
one text at a time: health checks need not wait for it.

Source: cmd/kube-scheduler/app/server.go Run, newEndpointsHandler (Kubernetes v1.36).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from berth.serving.access import ALWAYS_ALLOWED, Clients, Review, by_no_certificate, forbid_all
from berth.serving.connections import Connections
from berth.serving.gate import RequestGate
from berth.serving.health import Check, HealthChecks, ping
from berth.serving.request_bounds import MAX_BODY_BYTES
from berth.serving.serving_certificate import Certificate

STOP_SECONDS = 5.0
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


Page = Callable[[web.Request], Awaitable[web.Response]]
Mount = Callable[[web.UrlDispatcher], None]
"""Adds its pages to a router."""
"""Answers one path."""


async def _no_bytes() -> bytes:
    return b""


def _only_ping() -> dict[str, Check]:
    return {"ping": ping}


class Endpoints(msgspec.Struct, frozen=True):
    """What is shown; `configuration` is the effective v1 one, no `set_verbosity` hides its path."""

    metrics: Callable[[Sequence[str]], bytes]
    """The series of these names, all of them where none is named."""
    reset_metrics: Callable[[], Awaitable[None]]
    configuration: Callable[[], Mapping[str, Any]]
    healthz: Mapping[str, Check] = msgspec.field(default_factory=_only_ping)
    livez: Mapping[str, Check] = msgspec.field(default_factory=_only_ping)
    readyz: Mapping[str, Check] = msgspec.field(default_factory=_only_ping)
    set_verbosity: Callable[[int], None] | None = None
    plugins: Mount | None = None
    """Puts the paths of plugin administration into the router."""
    explanations: Mount | None = None
    """Puts the paths of the API group explain.berth.dev into the router."""
    cache: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    """What cache and queue hold, and where they differ from what was watched."""
    open_metrics: Callable[[Sequence[str]], bytes] | None = None
    """The same as `metrics` in OpenMetrics' text, which has exemplars, for those who ask for it."""
    resource_metrics: Callable[[], Awaitable[bytes]] = _no_bytes
    """What pods request and are limited to; empty in a process that does not lead."""
    pages: Mapping[str, Page] = msgspec.field(default_factory=dict)
    """More to GET, by path."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What every answer says of the process."""


class SecureServer:
    """A running server; `close` ends it."""

    def __init__(self, runner: web.AppRunner, connections: Connections, port: int) -> None:
        self._runner = runner
        self.connections = connections
        self.port = port
        connections.begin()

    @classmethod
    async def start(
        cls,
        listener: socket.socket,
        certificate: Certificate,
        endpoints: Endpoints,
        *,
        review: Review = forbid_all,
        always_allowed: tuple[str, ...] = ALWAYS_ALLOWED,
        clients: Clients = by_no_certificate,
    ) -> "SecureServer":
        """Serve on a listening socket."""
        gate = RequestGate(review, always_allowed, clients)
        app = web.Application(middlewares=[gate.pass_through], client_max_size=MAX_BODY_BYTES)
        app.on_response_prepare.append(partial(_say_who, endpoints.headers))
        _Handlers(endpoints).mount(app)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=STOP_SECONDS)
        await runner.setup()
        assert runner.server is not None, "set up"
        return cls(runner, Connections(runner.server, listener, certificate), listener.getsockname()[1])

    async def close(self) -> None:
        """Stop listening; requests that are being answered get a few seconds."""
        self.connections.stop_accepting()
        await self._runner.cleanup()
        await self.connections.close()


class _Handlers:
    """The answers by path."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._one_text = asyncio.Lock()
        self._checks = {
            "healthz": HealthChecks("healthz", endpoints.healthz),
            "livez": HealthChecks("livez", endpoints.livez),
            "readyz": HealthChecks("readyz", endpoints.readyz),
        }

    def mount(self, app: web.Application) -> None:
        """Put every path into the application."""
        router = app.router
        router.add_get(r"/{kind:healthz|livez|readyz}", self._health)
        router.add_get(r"/{kind:healthz|livez|readyz}/{check}", self._single_check)
        router.add_get("/metrics", self._metrics)
        router.add_delete("/metrics", self._reset_metrics)
        router.add_get("/metrics/slis", self._indicators)
        router.add_get("/metrics/resources", self._resources)
        router.add_get("/configz", self._configuration)
        for path, page in self._endpoints.pages.items():
            router.add_get(path, page)
        if self._endpoints.cache is not None:
            router.add_get("/debug/cache", partial(_cache, self._endpoints.cache))
        for mount in (self._endpoints.plugins, self._endpoints.explanations):
            if mount is not None:
                mount(router)
        if self._endpoints.set_verbosity is not None:
            router.add_route("*", "/debug/flags/v", partial(_verbosity, self._endpoints.set_verbosity))

    async def _health(self, request: web.Request) -> web.Response:
        report = self._checks[request.match_info["kind"]].report(
            excluded=request.query.getall("exclude", []), verbose="verbose" in request.query
        )
        return web.Response(status=200 if report.healthy else 500, text=report.text)

    async def _single_check(self, request: web.Request) -> web.Response:
        report = self._checks[request.match_info["kind"]].single(request.match_info["check"])
        if report is None:
            raise web.HTTPNotFound
        return web.Response(status=200 if report.healthy else 500, text=report.text)

    async def _metrics(self, request: web.Request) -> web.Response:
        text, kind = self._endpoints.metrics, EXPOSITION
        opened = self._endpoints.open_metrics
        if opened is not None and "application/openmetrics-text" in request.headers.get("Accept", ""):
            text, kind = opened, OPEN_METRICS
        async with self._one_text:
            body = await asyncio.to_thread(text, request.query.getall("name[]", []))
        return web.Response(body=body, headers={"Content-Type": kind})

    async def _reset_metrics(self, _request: web.Request) -> web.Response:
        await self._endpoints.reset_metrics()
        return web.Response(text="metrics reset\n")

    async def _indicators(self, _request: web.Request) -> web.Response:
        every = list(self._checks.values())
        lines = [
            "# TYPE kubernetes_healthcheck gauge",
            *(line for checks in every for line in checks.outcomes()),
            "# TYPE kubernetes_healthchecks_total counter",
            *(line for checks in every for line in checks.counts()),
        ]
        text = "".join(f"{line}\n" for line in lines)
        return web.Response(body=text.encode(), headers={"Content-Type": EXPOSITION})

    async def _resources(self, _request: web.Request) -> web.Response:
        async with self._one_text:
            body = await self._endpoints.resource_metrics()
        return web.Response(body=body, headers={"Content-Type": EXPOSITION})

    async def _configuration(self, _request: web.Request) -> web.Response:
        body = msgspec.json.encode({"componentconfig": self._endpoints.configuration()})
        return web.Response(body=body, content_type="application/json")


async def _say_who(headers: Mapping[str, str], _: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(headers)


async def _cache(report: Callable[[], Awaitable[Mapping[str, Any]]], _request: web.Request) -> web.Response:
    return web.Response(body=msgspec.json.encode(await report()), content_type="application/json")


async def _verbosity(set_verbosity: Callable[[int], None], request: web.Request) -> web.Response:
    if request.method != "PUT":
        return web.Response(status=406, text="unrecognized http method\n")
    value = (await request.text()).strip()
    if not value.isdecimal():
        return web.Response(status=400, text=f"failed to parse verbosity {value!r}\n")
    set_verbosity(int(value))
    return web.Response(text=f"successfully set klog.logging.verbosity to {value}")
