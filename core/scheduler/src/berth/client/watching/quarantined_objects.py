"""Objects of a watch that cannot be decoded, or at which an event handler fails.

    cached --a version fails--> set aside; the last good version stays in the cache
    set aside --another version succeeds, or the object is deleted--> dropped

Called by: reflector.
"""

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from berth.client.resources import Resource
from berth.client.wire import Meta, ObjectKey

log = logging.getLogger(__name__)

LONGEST_SHOWN = 512


class NotTaken(NamedTuple):
    """A version of an object that was set aside, and why."""

    resource: Resource
    meta: Meta
    problem: str


Report = Callable[[NotTaken], None]


def ignore(not_taken: NotTaken) -> None:
    """Report to no one."""
    del not_taken


class QuarantinedObjects(msgspec.Struct):
    """The objects of one kind that are set aside now, and how many versions were so far."""

    resource: Resource
    report: Report = ignore
    total: int = 0
    _held: dict[ObjectKey, Meta] = msgspec.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._held)

    def holds(self, key: ObjectKey, meta: Meta) -> bool:
        """Whether this version was tried, and failed."""
        held = self._held.get(key)
        return held is not None and (held.uid, held.resource_version) == (meta.uid, meta.resource_version)

    def put(self, key: ObjectKey, meta: Meta, error: Exception, *, traced: bool = True) -> None:
        """Set a version aside."""
        self._held[key] = meta
        self.note(key, error, traced=traced)
        self.report(NotTaken(self.resource, meta, shown(error)))

    def note(self, key: ObjectKey, error: Exception, *, traced: bool = True) -> None:
        """Count and log a failure, with its traceback unless it says all there is."""
        self.total += 1
        log.error(
            "object set aside, it cannot be taken in resource=%s object=%s err=%s",
            self.resource.plural,
            shown("/".join(key)),
            shown(error),
            exc_info=error if traced else None,
        )

    def forget(self, key: ObjectKey) -> None:
        """The object is taken in, or gone."""
        self._held.pop(key, None)

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._held)


def shown(text: object) -> str:
    """The text as it fits a line of a log."""
    line = str(text).replace("\n", " ")
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}..."
