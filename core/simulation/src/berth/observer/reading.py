"""Reading what happened in a cluster, as typed objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from berth.objects.api_object import TypedObject
from berth.recordings.cluster.events import Verb
from berth.recordings.formats import cut_off
from berth.simulation.reading.inputs import LocatedDocument, typed
from berth.simulation.reading.kinds import BY_NAME, KINDS, SimulatedKind
from berth.simulation.reading.recorded_events import RecordedEvent, RecordedEvents, open_events


class Happened(NamedTuple):
    """An event with its object; of one that is gone only the names count."""

    number: int
    at: datetime
    verb: Verb
    kind: SimulatedKind
    obj: TypedObject


@dataclass(slots=True)
class ClusterRecording:
    """One way through a file; `warnings` say what it lacks, once its last event was given."""

    read: RecordedEvents
    warnings: list[str] = field(default_factory=list)
    left_out: int = 0
    """Events of kinds that no decision reads."""

    def events(self) -> Iterator[Happened]:
        """Yield each event, numbered by its line. Raises: InputError."""
        seen: set[str] = set()
        for recorded in self.read:
            event = self._typed(recorded)
            if event is None:
                self.left_out += 1
                continue
            seen.add(event.kind.name)
            yield event
        path = self.read.path
        if not self.read.whole:
            self.warnings.append(cut_off(path))
        elif self.read.header is None:
            lacking = ", ".join(kind.resource.plural for kind in KINDS if kind.name not in seen)
            self.warnings.append(f"{path} has no event of {lacking}: decisions were made without them")

    def _typed(self, event: RecordedEvent) -> Happened | None:
        """The event with its object, None where no decision reads its kind."""
        group, _, version = event.document["apiVersion"].rpartition("/")
        kind = BY_NAME.get((group, event.document["kind"]))
        if kind is None or version != kind.resource.version:
            return None
        where = f"{self.read.path}:{event.number}"
        return Happened(event.number, event.at, event.verb, kind, _object(event.document, kind, where))


def _object(document: dict[str, Any], kind: SimulatedKind, where: str) -> TypedObject:
    metadata = document["metadata"]
    # A name of its own serves as the UID of an object that came without one.
    metadata.setdefault("uid", f"{metadata.get('namespace', '')}/{metadata.get('name', '')}")
    named = "/".join(metadata[field] for field in ("namespace", "name") if metadata.get(field))
    return typed(LocatedDocument(document, f"{where}: {kind.name} {named}"), kind)


@contextmanager
def open_recording(path: Path) -> Iterator[ClusterRecording | None]:
    """A recording that is read within the block, None where the file is none of a cluster.

    Raises: InputError where it cannot be read, or is of a later format.
    """
    with open_events(path) as found:
        yield None if found is None else ClusterRecording(found)
