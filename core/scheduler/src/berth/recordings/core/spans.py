"""What a tape is made of: spans, each an input of the core with what the core read and did because of it.

    input           arguments
    event           verb (add, update, delete), kind, object      a watch brought it
    pop             shard, UID of the pod or ""                   the scheduling loop took a pod
    cycle           -                                             and began its scheduling cycle
    step            task                                          a task of the core went on
    timer           timer                                         time was up
    answer          call, [error's type, text], kind, object      the API server answered
    flush           -                                             the queue's flushes were due
    follow          -                                             the snapshot took over what had changed
    end             reason                                        the recording ended

    output          arguments
    call            number, method, arguments                     a write began
    decided         pod, UID, node, plugins, nominated            a scheduling cycle ended

Nothing runs in the core but in a span. Times that the core reads are whole microseconds.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from berth.framework.clock import Clock
from berth.objects.api_object import TypedObject
from berth.objects.pods.pod import Pod

MICROSECONDS: Final = 1_000_000

EVENT, POP, CYCLE, STEP, TIMER = "event", "pop", "cycle", "step", "timer"
ANSWER, FLUSH, FOLLOW, END = "answer", "flush", "follow", "end"
CALL, DECIDED = "call", "decided"


_encode = msgspec.json.Encoder().encode


class TapeSpan:
    """One input, the readings of clocks while it was handled, and the outputs."""

    __slots__ = ("arguments", "cpu", "kind", "monotonic", "now", "outputs")

    def __init__(self, kind: str, arguments: tuple[Any, ...]) -> None:
        self.kind = kind
        self.arguments = arguments
        self.now: list[int] = []
        self.monotonic: list[int] = []
        self.cpu: list[int] = []
        self.outputs: list[tuple[Any, ...]] = []


class SpanLine(msgspec.Struct, omit_defaults=True):
    """A span as it is written; readings are differences, each to the one before on the same clock."""

    i: str
    a: list[Any] = []
    n: list[int] = []
    m: list[int] = []
    c: list[int] = []
    o: list[list[Any]] = []


class DeltaEncoding:
    """Turns readings into differences and back; one for each file."""

    def __init__(self) -> None:
        self._last = {"n": 0, "m": 0, "c": 0}

    def of(self, clock: str, readings: list[int]) -> list[int]:
        """The differences that stand for these readings."""
        last, found = self._last[clock], []
        for reading in readings:
            found.append(reading - last)
            last = reading
        self._last[clock] = last
        return found

    def undone(self, clock: str, differences: list[int]) -> list[int]:
        """The readings that these differences stand for."""
        last, found = self._last[clock], []
        for difference in differences:
            last += difference
            found.append(last)
        self._last[clock] = last
        return found


def line_of(span: TapeSpan, differences: DeltaEncoding) -> bytes:
    """The span as JSON."""
    line = SpanLine(
        span.kind,
        [plain(argument) for argument in span.arguments],
        differences.of("n", span.now),
        differences.of("m", span.monotonic),
        differences.of("c", span.cpu),
        [written(output) for output in span.outputs],
    )
    return _encode(line)


def written(output: tuple[Any, ...]) -> list[Any]:
    """An output as it is written and compared: pods by name and UID, other objects whole."""
    return [f"{each.key} {each.uid}" if isinstance(each, Pod) else plain(each) for each in output]


def plain(value: Any) -> Any:
    """The value as JSON has it; objects with what decisions read of them."""
    match value:
        case Pod():
            return msgspec.Raw(_encode(value.written()))
        case msgspec.Struct():
            return msgspec.Raw(_encode(value))
        case Exception():
            return [type(value).__name__, str(value)]
        case Mapping():
            return {key: plain(each) for key, each in value.items()}
        case tuple() | list():
            return [plain(each) for each in value]
    return value


def kind_of(obj: TypedObject) -> str:
    """The kind's name on a tape."""
    return type(obj).__name__


class RecordingClock:
    """A clock whose readings are noted; in whole microseconds, so that a replay reads the same."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.span = TapeSpan("", ())
        """The span that is under way."""
        self.running = False
        """Whether there is one."""

    def wall(self) -> float:
        """Wall-clock seconds since the epoch."""
        reading = int(self._clock.wall() * MICROSECONDS)
        if self.running:
            self.span.now.append(reading)
        return reading / MICROSECONDS

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        reading = int(self._clock.monotonic() * MICROSECONDS)
        if self.running:
            self.span.monotonic.append(reading)
        return reading / MICROSECONDS

    def cpu(self) -> float:
        """CPU seconds of the thread that asks."""
        reading = int(self._clock.cpu() * MICROSECONDS)
        if self.running:
            self.span.cpu.append(reading)
        return reading / MICROSECONDS
