"""Calls that are begun without a task, since most need not wait, and what becomes of those that do.

asyncio's own waiting (timeouts, the author's code) needs a task: `in_task` gives a call one at that point.
"""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")
_begins: ContextVar[bool] = ContextVar("berth_begins", default=False)


def begin(call: Coroutine[Any, Any, Result]) -> "Result | asyncio.Task[Result]":
    """Return what the call returns where it need not wait, else the task in which it goes on."""
    context = copy_context()
    try:
        waits_for = context.run(_first_step, call)
    except StopIteration as done:
        result: Result = done.value
        return result
    return asyncio.get_running_loop().create_task(_go_on(call, waits_for), context=context)


def _first_step(call: Coroutine[Any, Any, Any]) -> Any:
    # Where the call ends in this step, its context ends with it: nothing is left to be put back.
    _begins.set(True)
    waits_for = call.send(None)
    _begins.set(False)
    return waits_for


@types.coroutine
def in_task() -> Generator[None, None, None]:
    """Go on within a task of the call's own."""
    if _begins.get():
        yield


async def _go_on(call: Coroutine[Any, Any, Result], waits_for: Any) -> Result:
    result: Result = await _steps(call, waits_for)
    return result


@types.coroutine
def _steps(call: Coroutine[Any, Any, Result], waits_for: Any) -> Generator[Any, Any, Result]:
    """Pass on what a call waits for, which was begun already: it can't be awaited any more."""
    step: Callable[[Any], Any]
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:  # noqa: BLE001 - its own to handle, a cancellation above all
            step, value = call.throw, error
        else:
            step, value = call.send, sent
        try:
            waits_for = step(value)
        except StopIteration as done:
            result: Result = done.value
            return result
