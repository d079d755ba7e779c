"""How many volumes of each driver every node has, kept up to date as pods, claims and attachments change.

A node's count for a driver is that of the distinct volumes that its pods use or that VolumeAttachments hold
there. Users of volumes (a pod's volume, an attachment) are counted anew when something about them changed.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from berth.framework.mirrors.listers import Listers
from berth.objects.pods.pod_volumes import Disk, PlacedVolume
from berth.objects.volumes.csi_migration import CsiVolume
from berth.plugins.node_volume_limits.resolving import (
    CLAIM,
    STORAGE_CLASS,
    VOLUME,
    AnswerSource,
    Broken,
    Resolver,
)
from berth.snapshot.bounded_cache import BoundedCache, size_of
from berth.snapshot.columns.growing import Ints
from berth.snapshot.snapshot import Snapshot

K = TypeVar("K", bound=Hashable)
L = TypeVar("L", bound=Hashable)

MAX_BYTES = 8 << 20
NOWHERE: Mapping[int, int] = {}


class Attachment(NamedTuple):
    """A VolumeAttachment by name."""

    name: str


User: TypeAlias = PlacedVolume | Attachment
Held: TypeAlias = CsiVolume | Broken


class CountedVolumeUse(NamedTuple):
    """What a user was counted as, on which rows, and what that was made of."""

    held: Held | None
    rows: tuple[int, ...]
    sources: tuple[AnswerSource, ...]


class AttachedVolumes:
    """Counts by driver and row, and the rows of each volume."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._resolver = Resolver(listers)
        self._nodes: Snapshot | None = None
        self._names: list[str] = []
        self._static_generation = -1
        self._positions: dict[str, int] = {}
        self._clear()

    def follow(self, nodes: Snapshot) -> None:
        """Catch up with everything that changed in the whole snapshot and in the watched objects."""
        if self._nodes is not nodes:
            self._nodes, self._positions = nodes, {}
            self._clear()
        moved = self._rows_moved(nodes)
        users = self._changed(nodes)
        if users is None:
            self._clear()
            users = dict.fromkeys((*filter(_may_count, nodes.volumes), *self._attachments()))
        elif moved:
            users |= dict.fromkeys(self._attachments())
        for user in users:
            self._forget(user)
        for user in users:
            self._count(user, nodes)

    def used(self, driver: str, n: int) -> Ints:
        """How many volumes of the driver each of the first n rows has.

        Shapes: result int64 (n,).
        """
        column = self._columns.get(driver)
        if column is None or len(column) < n:
            column = np.zeros(max(n, len(self._names)), dtype=np.int64)
            counts = self._used.get(driver, NOWHERE)
            column[[*counts]] = [*counts.values()]
            self._columns.drop(driver)
            self._columns.put(driver, column, column.nbytes + size_of(driver))
        return column[:n]

    def rows_with(self, volume: Held) -> Mapping[int, int]:
        """The rows with placed pods that use the volume."""
        table = self._broken if isinstance(volume, Broken) else self._by_pods
        return table.get(volume, NOWHERE)

    def broken(self) -> Iterator[Held]:
        """The claims that placed pods must not use."""
        return iter(self._broken)

    def attached_to(self, row: int) -> Iterable[CsiVolume]:
        """The volumes that VolumeAttachments hold on the node of that row."""
        return self._attached_to.get(row, {}).keys()

    def _clear(self) -> None:
        self._entries: dict[User, CountedVolumeUse] = {}
        self._dependants: dict[AnswerSource, dict[User, None]] = {}
        self._by_pods: dict[Held, dict[int, int]] = {}
        self._broken: dict[Held, dict[int, int]] = {}
        self._holders: dict[CsiVolume, dict[int, int]] = {}
        self._attached_to: dict[int, dict[CsiVolume, int]] = {}
        self._used: dict[str, dict[int, int]] = {}
        self._columns: BoundedCache[str, Ints] = BoundedCache(MAX_BYTES)

    def _rows_moved(self, nodes: Snapshot) -> bool:
        if self._static_generation == nodes.static_generation:
            return False
        self._static_generation = nodes.static_generation
        if self._names == nodes.names:
            return False
        self._names = list(nodes.names)
        return True

    def _changed(self, nodes: Snapshot) -> dict[User, None] | None:
        """The users to count anew; None where too much happened since the last look."""
        users: dict[User, None] = {}
        listers = self._listers
        lost = False
        for kind, journal in (
            (CLAIM, listers.persistent_volume_claims.changes),
            (VOLUME, listers.persistent_volumes.changes),
            (STORAGE_CLASS, listers.storage_classes.changes),
            ("attachment", listers.volume_attachments.changes),
        ):
            keys = journal.since(self._positions.get(kind, 0))
            self._positions[kind] = journal.end
            lost |= keys is None
            for key in keys or ():
                users |= self._dependants.get(AnswerSource(kind, key), {})
                if kind == "attachment":
                    users[Attachment(key)] = None
        volumes = nodes.volumes.changes.since(self._positions.get("pods", 0))
        self._positions["pods"] = nodes.volumes.changes.end
        if lost or volumes is None:
            return None
        came = chain.from_iterable([change.volumes for change in volumes])
        return users | dict.fromkeys(filter(_may_count, came))

    def _attachments(self) -> Iterable[Attachment]:
        return (Attachment(attachment.key) for attachment in self._listers.volume_attachments)

    def _count(self, user: User, nodes: Snapshot) -> None:
        entry = self._attachment(user, nodes) if isinstance(user, Attachment) else self._volume(user, nodes)
        if not entry.rows and not isinstance(user, Attachment):
            return
        self._entries[user] = entry
        for source in entry.sources:
            self._dependants.setdefault(source, {})[user] = None
        self._add(user, entry, 1)

    def _forget(self, user: User) -> None:
        entry = self._entries.pop(user, None)
        if entry is None:
            return
        for source in entry.sources:
            users = self._dependants[source]
            del users[user]
            if not users:
                del self._dependants[source]
        self._add(user, entry, -1)

    def _volume(self, volume: PlacedVolume, nodes: Snapshot) -> CountedVolumeUse:
        rows = tuple(nodes.volumes.rows(volume))
        counted = self._resolver.counted(volume)
        held = counted if isinstance(counted, Held) else None
        return CountedVolumeUse(held, rows, self._resolver.sources(volume))

    def _attachment(self, user: Attachment, nodes: Snapshot) -> CountedVolumeUse:
        attachment = self._listers.volume_attachments.by_key(user.name)
        if attachment is None:
            return CountedVolumeUse(None, (), ())
        row = nodes.row_of.get(attachment.spec.node_name)
        source = AnswerSource(VOLUME, attachment.spec.source.persistent_volume_name or "")
        return CountedVolumeUse(self._attached(user.name), () if row is None else (row,), (source,))

    def _attached(self, name: str) -> CsiVolume | None:
        """The volume of an attachment, as its attacher counts it."""
        attachment = self._listers.volume_attachments.by_key(name)
        if attachment is None or not attachment.spec.attacher:
            return None
        volume = self._listers.persistent_volumes.get(attachment.spec.source.persistent_volume_name or "")
        if volume is None or volume.spec.csi is None:
            return None
        return CsiVolume(attachment.spec.attacher, volume.spec.csi.volume_handle)

    def _add(self, user: User, entry: CountedVolumeUse, sign: int) -> None:
        if entry.held is None:
            return
        for row in entry.rows:
            if not isinstance(user, Attachment):
                broken = isinstance(entry.held, Broken)
                _bump(self._broken if broken else self._by_pods, entry.held, row, sign)
            elif isinstance(entry.held, CsiVolume):
                _bump(self._attached_to, row, entry.held, sign)
            if isinstance(entry.held, CsiVolume):
                self._hold(entry.held, row, sign)

    def _hold(self, volume: CsiVolume, row: int, sign: int) -> None:
        before = self._holders.get(volume, NOWHERE).get(row, 0)
        after = _bump(self._holders, volume, row, sign)
        if bool(before) != bool(after):
            _bump(self._used, volume.driver, row, sign)
            column = self._columns.peek(volume.driver)
            if column is not None and row < len(column):
                column[row] += sign
            else:
                self._columns.drop(volume.driver)


def _may_count(volume: PlacedVolume) -> bool:
    """Whether a driver may count the volume: none counts disks, of which a pod may have very many."""
    return not isinstance(volume, Disk)


def _bump(table: dict[K, dict[L, int]], key: K, second: L, sign: int) -> int:
    """Count under both keys; what the count is now. Nothing is kept where nothing is counted."""
    counts = table.setdefault(key, {})
    count = counts.get(second, 0) + sign
    if count:
        counts[second] = count
    else:
        counts.pop(second, None)
        if not counts:
            del table[key]
    return count
