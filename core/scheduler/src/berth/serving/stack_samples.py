"""Where a thread spends its time, seen from another thread: its stack is looked at a hundred times a second.

The thread that is looked at does nothing for it: a profile of a busy loop, or of one that hangs, costs that
loop no more than what the look itself takes. A look needs the interpreter's lock. It comes where the other
thread gives that up, so calls that do (I/O, numpy on many rows) show more often than they take; C code that
keeps the lock shows as the line that called it. A sampler outside the process, such as py-spy, has neither
fault.
"""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from types import CodeType, FrameType

import msgspec

LOOK_SECONDS = 0.01
SHOWN_FUNCTIONS = 80


class StackSamples(msgspec.Struct):
    """How often each function was on top of a thread's stack, and how often in it."""

    looks: int = 0
    _own: Counter[CodeType] = msgspec.field(default_factory=Counter)
    _cumulative: Counter[CodeType] = msgspec.field(default_factory=Counter)

    def take(self, thread: int, seconds: float, stop: threading.Event) -> None:
        """Look at the thread until the time is over or `stop` is set; to be run in another thread."""
        for _ in range(max(1, round(seconds / LOOK_SECONDS))):
            if stop.wait(LOOK_SECONDS):
                return
            self.look(sys._current_frames().get(thread))  # noqa: SLF001 - the documented way to see a thread

    def look(self, top: FrameType | None) -> None:
        """Count one stack."""
        if top is None:
            return
        self.looks += 1
        self._own[top.f_code] += 1
        # A function that calls itself counts once.
        self._cumulative.update({frame.f_code for frame in _frames(top)})

    def text(self) -> str:
        """The functions that took the most time, themselves and what they called."""
        lines = [f"{self.looks} samples, one each {LOOK_SECONDS * 1e3:.0f} ms", "cumulative   own  function"]
        for code, within in self._cumulative.most_common(SHOWN_FUNCTIONS):
            shares = f"{within / self.looks:9.1%} {self._own[code] / self.looks:6.1%}"
            lines.append(f"{shares}  {code.co_filename}:{code.co_firstlineno} {code.co_qualname}")
        return "".join(f"{line}\n" for line in lines)


def _frames(top: FrameType | None) -> Iterator[FrameType]:
    while top is not None:
        yield top
        top = top.f_back
