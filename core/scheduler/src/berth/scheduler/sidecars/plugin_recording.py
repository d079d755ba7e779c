"""Recordings of plugins over the secure port: written to the client that asked, as they come into being.

    POST /plugins/NAME/recording?attempts=...&seconds=...&bytes=...

Nothing of them is kept here, so a recording costs no disk, and its memory is bounded. It holds pods: who may
have one is asked under a verb of its own (docs/decisions/).
"""

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from aiohttp import web

from berth.aggregated_api.status import http_status
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.wanted import AttachError
from berth.recordings.calls.recording import MAX_BYTES, CallRecording, Extent
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.serving.errors import LoopBusyError
from berth.serving.request_bounds import within_write_time

LEAST_BYTES = 1024
DEFAULT_SECONDS = 30.0
N = TypeVar("N", int, float)


async def record(
    attaching: Callable[[], Attaching], request: web.Request, turns: LoopTurns
) -> web.StreamResponse:
    """Answer such a request; the loop that owns the plugins records, this one writes."""
    name = request.match_info["name"]

    async def begin() -> CallRecording:
        return attaching().record(name, _extent(request))

    try:
        recording = await turns.ask(begin)
    except ValueError as error:
        status, reason = (409, "Conflict") if isinstance(error, AttachError) else (400, "BadRequest")
        return http_status(status, reason, str(error))
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    try:
        await response.prepare(request)
        await _write(request, response, recording.batches(), turns)
    except (ConnectionResetError, LoopBusyError):
        # The file shows that it was cut: its last entry is missing.
        return response
    finally:
        turns.tell(lambda: attaching().end_recording(recording))
    return response


async def _write(
    request: web.Request, response: web.StreamResponse, batches: AsyncIterator[bytes], turns: LoopTurns
) -> None:
    """Write one batch after the other, for as long as they are read."""

    async def following() -> bytes | None:
        return await anext(batches, None)

    while (batch := await turns.ask(following)) is not None:
        if request.transport is None or request.transport.is_closing():
            return
        await within_write_time(request, response.write(batch))


def _extent(request: web.Request) -> Extent:
    """How much is asked for; half a minute where nothing says how much.

    Raises: ValueError.
    """
    attempts = _number(request, "attempts", int, 1)
    seconds = _number(request, "seconds", float, 0.001)
    if attempts is None and seconds is None:
        seconds = DEFAULT_SECONDS
    return Extent(attempts, seconds, _number(request, "bytes", int, LEAST_BYTES) or MAX_BYTES)


def _number(request: web.Request, name: str, kind: type[N], least: N) -> N | None:
    text = request.query.get(name)
    if text is None:
        return None
    try:
        number = kind(text)
    except ValueError:
        number = kind(-1)
    # A number that is none is not at least anything.
    if not number >= least:
        raise ValueError(f"{name}: must be a number from {least} on, not {text!r}")
    return number
