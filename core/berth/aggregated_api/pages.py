"""The paths of the group on the secure port, which has authorized each request before it comes here."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from aiohttp import web

from berth.aggregated_api.discovery import (
    AGGREGATED,
    AGGREGATED_GROUPS,
    DOCUMENTS,
    GROUP,
    GROUP_VERSION,
    KIND,
    RESOURCE,
    ROOT,
    SINGULAR,
    Json,
    wants_aggregated,
    wants_table,
)
from berth.aggregated_api.errors import NoSuchPodError, UnavailableError
from berth.aggregated_api.request_info import is_name
from berth.aggregated_api.routing import Asked, Explanation
from berth.aggregated_api.sending_on import SENT_ON_BY
from berth.aggregated_api.status import http_status

_NAMED = f"{ROOT}/namespaces/{{namespace}}/{RESOURCE}/{{name}}"
_LISTS = (f"{ROOT}/{RESOURCE}", f"{ROOT}/namespaces/{{namespace}}/{RESOURCE}")
_RETRY_SECONDS = 1

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Explain(Protocol):
    """Explains a pod."""

    async def __call__(self, asked: Asked, *, was_sent_on: bool) -> Explanation:
        """What is known of it. Raises: NoSuchPodError, UnavailableError."""


class ExplainPages:
    """Answers requests of the group."""

    def __init__(self, explain: Explain) -> None:
        self._explain = explain

    def mount(self, router: web.UrlDispatcher) -> None:
        """Put the paths in."""
        for path, document in DOCUMENTS.items():
            router.add_get(path, _discovery(path, document))
        router.add_get(_NAMED, self._get)
        for path in (*_LISTS, _NAMED):
            router.add_route("*", path, _not_allowed)

    async def _get(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        details: Json = {"name": name, "group": GROUP, "kind": RESOURCE}
        asked = Asked(namespace, name, dict(request.query))
        try:
            found = await self._found(asked, was_sent_on=SENT_ON_BY in request.headers)
        except NoSuchPodError as error:
            message = f'{RESOURCE}.{GROUP} "{name}" not found: {error}'
            return http_status(404, "NotFound", message, details)
        except UnavailableError as error:
            later = {**details, "retryAfterSeconds": _RETRY_SECONDS}
            response = http_status(503, "ServiceUnavailable", str(error), later)
            response.headers["Retry-After"] = str(_RETRY_SECONDS)
            return response
        head = {"apiVersion": GROUP_VERSION, "kind": KIND}
        metadata = {"metadata": {"name": name, "namespace": namespace}}
        explanation = {**head, **metadata, **msgspec.to_builtins(found)}
        if wants_table(request.headers.get("Accept", "")):
            return _json(_table(explanation))
        return _json(explanation)

    async def _found(self, asked: Asked, *, was_sent_on: bool) -> Explanation:
        if not (is_name(asked.namespace) and is_name(asked.name)):
            raise NoSuchPodError("no pod may have that name")
        return await self._explain(asked, was_sent_on=was_sent_on)


def _discovery(path: str, document: Json) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        if path == "/apis" and wants_aggregated(request.headers.get("Accept", "")):
            body = msgspec.json.encode(AGGREGATED_GROUPS)
            return web.Response(body=body, headers={"Content-Type": AGGREGATED})
        return _json(document)

    return answer


async def _not_allowed(request: web.Request) -> web.Response:
    if request.method in ("GET", "HEAD"):
        remedy = f"name a pod, as in kubectl get {SINGULAR}.{GROUP} NAME -n NAMESPACE"
        message = f"{RESOURCE} are made when they are asked for, and are not listed: {remedy}"
    else:
        message = f"{RESOURCE} are made when they are asked for, and can't be written"
    return http_status(405, "MethodNotAllowed", message, {"group": GROUP, "kind": RESOURCE})


def _json(document: Json) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


def _table(explanation: Json) -> Json:
    """The explanation in a row, as `kubectl get` prints it."""
    columns = [
        {"name": name, "type": "string", "format": form, "description": about, "priority": 0}
        for name, form, about in (
            ("Name", "name", "The pod."),
            ("Scheduler", "", "The profile that schedules it."),
            ("State", "", "Where it stands on its way to a node."),
            ("Cause", "", "Why it is there."),
        )
    ]
    metadata, state = explanation["metadata"], explanation.get("state") or {}
    cells = [
        metadata["name"],
        explanation.get("profile", ""),
        state.get("kind", ""),
        explanation.get("cause", ""),
    ]
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns,
        "rows": [{"cells": cells, "object": partial}],
    }
