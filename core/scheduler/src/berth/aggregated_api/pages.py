"""The paths of the group on the secure port, which has authorized each request before it comes here."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
from aiohttp import web

from berth.aggregated_api.discovery import (
    AGGREGATED,
    AGGREGATED_GROUPS,
    DOCUMENTS,
    wants_aggregated,
    wants_table,
)
from berth.aggregated_api.errors import NoSuchObjectError, TooManyQuestionsError, UnavailableError
from berth.aggregated_api.kinds import GROUP, GROUP_VERSION, KINDS, PROFILE, QUEUE, ExplainKind, Json
from berth.aggregated_api.replicas import SENT_ON_BY
from berth.aggregated_api.request_info import is_name, is_profile_name
from berth.aggregated_api.routing import ExplainRequest, Explanation
from berth.aggregated_api.status import http_later, http_status
from berth.aggregated_api.text_pages import PAGES
from berth.aggregated_api.users import USER

_RETRY_SECONDS = 1

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Explain(Protocol):
    """Explains an object."""

    async def __call__(self, asked: ExplainRequest, *, was_sent_on: bool) -> Explanation:
        """What is known of it. Raises: NoSuchObjectError, TooManyQuestionsError, UnavailableError."""


class ExplainPages:
    """Answers requests of the group."""

    def __init__(self, explain: Explain) -> None:
        self._explain = explain

    def mount(self, router: web.UrlDispatcher) -> None:
        """Put the paths in."""
        for path, document in DOCUMENTS.items():
            router.add_get(path, _discovery(path, document))
        for kind in KINDS:
            router.add_get(kind.template, partial(self._get, kind))
            lists = {kind.collection(""), kind.collection("{namespace}" if kind.namespaced else "")}
            for path in (*sorted(lists), kind.template):
                router.add_route("*", path, partial(_not_allowed, kind))

    async def _get(self, kind: ExplainKind, request: web.Request) -> web.Response:
        namespace, name = request.match_info.get("namespace", ""), request.match_info["name"]
        details: Json = {"name": name, "group": GROUP, "kind": kind.resource}
        asked = ExplainRequest(kind, namespace, name, dict(request.query), USER.get())
        try:
            found = await self._found(asked, was_sent_on=SENT_ON_BY in request.headers)
        except NoSuchObjectError as error:
            message = f'{kind.resource}.{GROUP} "{name}" not found: {error}'
            causes = [
                {"reason": "FieldValueNotSupported", "field": "metadata.name", "message": one}
                for one in error.names
            ]
            return http_status(404, "NotFound", message, {**details, "causes": causes} if causes else details)
        except TooManyQuestionsError as error:
            return http_later(429, "TooManyRequests", str(error), error.retry_seconds, details)
        except UnavailableError as error:
            return http_later(503, "ServiceUnavailable", str(error), _RETRY_SECONDS, details)
        head = {"apiVersion": GROUP_VERSION, "kind": kind.name}
        metadata = {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}
        explanation = {**head, **metadata, **msgspec.to_builtins(found)}
        if request.headers.get("Accept", "").startswith("text/plain"):
            return web.Response(text="".join(f"{line}\n" for line in PAGES[kind](explanation)))
        if wants_table(request.headers.get("Accept", "")):
            return _json(_table(kind, explanation))
        return _json(explanation)

    async def _found(self, asked: ExplainRequest, *, was_sent_on: bool) -> Explanation:
        may_be_named = is_profile_name if asked.kind in (PROFILE, QUEUE) else is_name
        if not (may_be_named(asked.name) and (is_name(asked.namespace) or not asked.kind.namespaced)):
            raise NoSuchObjectError(f"{asked.kind.subject} may not have that name")
        return await self._explain(asked, was_sent_on=was_sent_on)


def _discovery(path: str, document: Json) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        if path == "/apis" and wants_aggregated(request.headers.get("Accept", "")):
            body = msgspec.json.encode(AGGREGATED_GROUPS)
            return web.Response(body=body, headers={"Content-Type": AGGREGATED})
        return _json(document)

    return answer


async def _not_allowed(kind: ExplainKind, request: web.Request) -> web.Response:
    if request.method in ("GET", "HEAD"):
        where = " -n NAMESPACE" if kind.namespaced else ""
        remedy = f"name {kind.subject}, as in kubectl get {kind.singular}.{GROUP} NAME{where}"
        message = f"{kind.resource} are made when they are asked for, and are not listed: {remedy}"
    else:
        message = f"{kind.resource} are made when they are asked for, and can't be written"
    return http_status(405, "MethodNotAllowed", message, {"group": GROUP, "kind": kind.resource})


def _json(document: Json) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


def _table(kind: ExplainKind, explanation: Json) -> Json:
    """The explanation in a row, as `kubectl get` prints it."""
    metadata = explanation["metadata"]
    name = {"name": "Name", "type": "string", "format": "name", "description": f"The name of {kind.subject}."}
    columns = [
        {"name": column.name, "type": column.type, "format": "", "description": column.about}
        for column in kind.columns
    ]
    cells = [metadata["name"], *(column.cell(explanation) for column in kind.columns)]
    partial_object = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [{**column, "priority": 0} for column in (name, *columns)],
        "rows": [{"cells": cells, "object": partial_object}],
    }
