"""The state to check, from an API server, page by page."""

import json
from collections.abc import Awaitable, Callable, Collection
from typing import Any, NamedTuple
from urllib.parse import quote

from berth.demo.checker.check import check
from berth.demo.checker.documents import Document
from berth.demo.checker.report import CheckReport

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
EVENTS = "/apis/events.k8s.io/v1/events"

Get = Callable[[str], Awaitable[bytes]]
"""Answers a path with the body of a successful response, and raises otherwise."""


class UnreadableAnswerError(Exception):
    """The API answered with something that is no page of a list."""


class ApiState(NamedTuple):
    """What the API holds of each kind."""

    nodes: list[Document]
    pods: list[Document]
    events: list[Document]


async def fetch_state(get: Get, *, page_size: int = 500) -> ApiState:
    """List nodes, pods and events, one kind after the other: scheduling should be at rest.

    Raises:
        UnreadableAnswerError: an answer is no list, or its pages never end.
    """
    nodes = await _all_pages(get, NODES, page_size)
    pods = await _all_pages(get, PODS, page_size)
    events = await _all_pages(get, EVENTS, page_size)
    return ApiState(nodes, pods, events)


async def check_api(
    get: Get,
    *,
    page_size: int = 500,
    placed_by_others: Collection[str] = (),
    missing_events_allowed: bool = False,
) -> CheckReport:
    """Fetch the state and check it; the options are those of `check`."""
    state = await fetch_state(get, page_size=page_size)
    return check(
        *state,
        placed_by_others=placed_by_others,
        missing_events_allowed=missing_events_allowed,
    )


async def _all_pages(get: Get, path: str, page_size: int) -> list[Document]:
    items: list[Document] = []
    token, seen = "", set()
    while token not in seen:
        seen.add(token)
        query = f"?limit={page_size}" + (f"&continue={quote(token, safe='')}" if token else "")
        page = _page(path, await get(path + query))
        items += page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return items
    raise UnreadableAnswerError(f"{path}: the server gave the same continue token twice")


def _page(path: str, body: bytes) -> dict[str, Any]:
    try:
        page = json.loads(body)
    except ValueError as error:
        raise UnreadableAnswerError(f"{path}: no JSON ({error})") from None
    if not isinstance(page, dict) or not isinstance(page.get("items"), list | None) or "items" not in page:
        raise UnreadableAnswerError(f"{path}: the answer is no list")
    return page
