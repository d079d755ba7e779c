"""Sidecars as an administrator sees them: listed, described, attached, detached over HTTPS.

    GET /plugins   GET /plugins/NAME   PUT /plugins (a PluginList)   DELETE /plugins/NAME?profile=...
    PUT /plugins/NAME/shadow   DELETE /plugins/NAME/shadow
    POST /plugins/NAME/recording (plugin_recording.py)

Changes are made where they last and reach every replica: not by a standby, which names its leader, nor where
an operator keeps the scheduler, whose resource is named. Questions every process answers.

Access is reviewed as for every other path (docs/decisions/). Plugins belong to the scheduling loop: it
answers, and the secure port's own loop waits for it.

What hosts plugins is imported with the first request that is about one, so that a scheduler without any does
not hold gRPC (out_of_tree_plugins.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from berth.aggregated_api.status import http_status
from berth.config.errors import PluginListError
from berth.config.out_of_tree.plugin_list import read_plugin_list
from berth.out_of_tree.lifecycle.wanted import AttachError, DesiredPlugin
from berth.scheduler.loop.loop_turns import LoopTurns

if TYPE_CHECKING:
    from berth.out_of_tree.lifecycle.attaching import Attaching

BODY = "request"

Answer = Callable[[web.Request], Coroutine[Any, Any, web.Response]]


class PluginAdmin:
    """Answers requests about plugins.

    `attaching` and `lines`, every plugin in a line, are asked for by the loop that owns plugins, whose turns
    `turns` are; `keep_objects` is awaited before the first of them joins. `refusal` says why changes are not
    made here and where they are, "" where they are made; `holds` is part of the answer to one that is made:
    how long it holds.
    """

    def __init__(
        self,
        attaching: "Callable[[], Attaching]",
        lines: Callable[[], list[dict[str, Any]]],
        keep_objects: Callable[[], Awaitable[None]],
        turns: LoopTurns,
        refusal: Callable[[], str],
        *,
        holds: str,
    ) -> None:
        self._attaching = attaching
        self._lines = lines
        self._keep_objects = keep_objects
        self._turns = turns
        self._refusal = refusal
        self._holds = holds

    def mount(self, router: web.UrlDispatcher) -> None:
        """Put the paths in."""
        router.add_get("/plugins", self._list)
        router.add_put("/plugins", self._asked(self._here(self._attach)))
        router.add_get("/plugins/{name}", self._asked(self._describe))
        router.add_delete("/plugins/{name}", self._asked(self._here(self._detach)))
        router.add_post("/plugins/{name}/recording", self._record)
        router.add_put("/plugins/{name}/shadow", self._asked(self._here(self._shadow)))
        router.add_delete("/plugins/{name}/shadow", self._asked(self._here(self._shadow)))

    def _asked(self, answer: Answer) -> Answer:
        """That answer, given by the loop that owns the plugins."""

        async def asked(request: web.Request) -> web.Response:
            await asyncio.to_thread(_import_host)
            return await self._turns.ask(lambda: answer(request))

        return asked

    def _here(self, change: Answer) -> Answer:
        """That change, unless it is refused."""

        async def changed(request: web.Request) -> web.Response:
            if refusal := self._refusal():
                return http_status(409, "Conflict", refusal)
            return await change(request)

        return changed

    async def _list(self, _request: web.Request) -> web.Response:
        async def lines() -> list[dict[str, Any]]:
            return self._lines()

        return _json({"plugins": await self._turns.ask(lines)})

    async def _describe(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        try:
            return _json(self._attaching().describe(name))
        except KeyError:
            return _unknown(name)

    async def _attach(self, request: web.Request) -> web.Response:
        try:
            specs, directory = read_plugin_list(await request.read(), BODY)
        except PluginListError as error:
            return http_status(400, "BadRequest", str(error))
        if directory is not None:
            text = "directory: is followed where the list of --plugins names it, not attached"
            return http_status(400, "BadRequest", f"{BODY}: {text}")
        await self._keep_objects()
        notes: list[str] = []
        try:
            for spec in specs:
                notes += await self._attaching().attach(DesiredPlugin.of(spec))
        except AttachError as error:
            return http_status(409, "Conflict", str(error))
        return self._made([spec.name for spec in specs], notes)

    async def _record(self, request: web.Request) -> web.StreamResponse:
        await asyncio.to_thread(_import_host)
        from berth.scheduler.sidecars.plugin_recording import record  # noqa: PLC0415 (see the top)

        try:
            return await record(self._attaching, request, self._turns)
        except KeyError:
            return _unknown(request.match_info["name"])

    async def _detach(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return await self._done(name, self._attaching().detach(name, request.query.getall("profile", [])))

    async def _shadow(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return await self._done(name, self._attaching().shadow(name, on=request.method == "PUT"))

    async def _done(self, name: str, change: Coroutine[Any, Any, None]) -> web.Response:
        """What comes of a change to that plugin, which is brought to its end even if the client goes away."""
        try:
            await asyncio.shield(change)
        except KeyError:
            return _unknown(name)
        except AttachError as error:
            return http_status(409, "Conflict", str(error))
        return self._made([name])

    def _made(self, names: list[str], notes: Sequence[str] = ()) -> web.Response:
        """What was changed, for how long, and what of it has no effect."""
        return _json({"plugins": names, "message": "\n".join((*notes, self._holds))})


def _import_host() -> None:
    """Import what takes a third of a second of CPU, in which no loop is to stand still."""
    import berth.out_of_tree.lifecycle.attaching  # noqa: F401, PLC0415 (see the top)


def _json(document: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")


def _unknown(name: str) -> web.Response:
    return http_status(404, "NotFound", f"no plugin {name}: berth plugin list shows those that there are")
