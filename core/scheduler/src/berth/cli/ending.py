"""How a verb ends on a signal: what it started is ended first, whichever signal it was."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALLED: Final = 128


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have SIGTERM end the work as an interrupt does, and exit with 128 and the signal's number.

    asyncio cancels its main task on an interrupt, so that `finally` and exit stacks run. A verb with handlers
    of its own in its event loop keeps them. A process that was started to ignore interrupts, as a script's
    shell starts what it puts into the background, goes on ignoring them, and ends on SIGTERM all the same.
    """
    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield
        return
    caught = signal.SIGINT

    def as_interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal caught
        caught = signal.SIGTERM
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, as_interrupt)
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(_SIGNALLED + caught)
    finally:
        signal.signal(signal.SIGTERM, before)
