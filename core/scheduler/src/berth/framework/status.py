"""Statuses: what a plugin, or a whole extension point, answers.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go Code, Status (Kubernetes v1.36).
"""

from enum import IntEnum
from typing import TypeVar

import msgspec

E = TypeVar("E", bound=BaseException)


class Code(IntEnum):
    """The kinds of answers, with upstream's numbers and texts."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        return _TEXTS[self]


_TEXTS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

MAX_CHARACTERS = 32 * 1024
"""A message that is longer is cut: users and nodes write parts of it, and it is written to every condition.

Source: metav1.Condition, the longest message.
"""

REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


class Status(msgspec.Struct, frozen=True):
    """An answer: its code, why, the error behind it if any, and the plugin that gave it."""

    code: Code = Code.SUCCESS
    own_reasons: tuple[str, ...] = ()
    plugin: str = ""
    error: BaseException | None = None

    @property
    def ok(self) -> bool:
        """Whether this is a plain success."""
        return self.code is Code.SUCCESS

    @property
    def skip(self) -> bool:
        """Whether the plugin has nothing to do for this pod."""
        return self.code is Code.SKIP

    @property
    def rejected(self) -> bool:
        """Whether the pod was turned down, as opposed to something being broken."""
        return self.code in REJECTED

    @property
    def reasons(self) -> tuple[str, ...]:
        """The error's text, if there is an error, and then the reasons."""
        own = tuple(map(_cut, self.own_reasons))
        return (_cut(str(self.error)), *own) if self.error is not None else own

    @property
    def message(self) -> str:
        """All reasons one after the other, in at most MAX_CHARACTERS."""
        return _cut(", ".join(self.reasons))

    def from_plugin(self, name: str) -> "Status":
        """The same answer, signed."""
        return msgspec.structs.replace(self, plugin=name)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - len(_ELLIPSIS)] + _ELLIPSIS


_ELLIPSIS = "..."

SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """A rejection that the removal of pods could lift."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """A rejection that no removal of pods lifts."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def failed(error: BaseException | str) -> Status:
    """Something broke; a text stands for an error with that text. The error is left without its frames."""
    return Status(Code.ERROR, error=PluginError(error) if isinstance(error, str) else without_frames(error))


def without_frames(error: E) -> E:
    """The error, and what caused it, without the frames through which they were raised.

    An error that is kept as a value keeps the variables of these frames, such as a request of many MiB; where
    one of them leads to the error, until the garbage collector looks at what is old, which it seldom does.
    An error that a plugin raises again and again may be its own cause.
    """
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            left += (each.__cause__, each.__context__)
    return error


class PluginError(Exception):
    """A plugin could not answer; the cycle fails with this text."""
