"""How parts of the client sleep, are called later, and write the time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

Sleep = Callable[[float], Awaitable[None]]
After = Callable[[float, Callable[[], None]], "asyncio.TimerHandle"]


def after(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    """Make the call after that time, unless it is cancelled before."""
    return asyncio.get_running_loop().call_later(seconds, call)


def micro_time(seconds: float) -> str:
    """Seconds since the epoch as the API's MicroTime: `2026-01-02T03:04:05.000006Z`."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"
