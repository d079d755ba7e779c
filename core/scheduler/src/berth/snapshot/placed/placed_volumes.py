"""Volumes of placed pods: which nodes have a pod with which claim, disk or volume."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from berth.objects.pods.pod_volumes import PlacedVolume
from berth.snapshot.journal import Journal
from berth.snapshot.placed.pod_counts import count_on
from berth.snapshot.pod_info import PodInfo

NOWHERE: Mapping[int, int] = {}
BYTES_A_BYTE = 4
"""About how many bytes the volumes of a pod take for each byte of its template as JSON."""


class _OfPod(NamedTuple):
    """The volumes of a pod, and how large its template is."""

    volumes: tuple[PlacedVolume, ...]
    size_bytes: int


def _size(change: _OfPod) -> int:
    return BYTES_A_BYTE * change.size_bytes


class PlacedVolumes:
    """Rows by volume; pods without volumes cost nothing.

    `changes` has the volumes of each pod that came to a row or left one.
    """

    def __init__(self) -> None:
        self._rows: dict[PlacedVolume, int | dict[int, int]] = {}
        """The row of a volume that one pod uses; else how many pods use it, by row."""
        self.changes: Journal[_OfPod] = Journal(size_of=_size)
        self.claims: dict[str, int] = {}
        """How many placed pods use each PersistentVolumeClaim, by `namespace/name`."""

    def __iter__(self) -> Iterator[PlacedVolume]:
        return iter(self._rows)

    def rows(self, volume: PlacedVolume) -> Mapping[int, int]:
        """The rows with pods that use the volume, and how many of them there are."""
        held = self._rows.get(volume, NOWHERE)
        return {held: 1} if isinstance(held, int) else held

    def add(self, row: int, info: PodInfo, sign: int = 1) -> None:
        """Count a pod in on that row, or out where `sign` is -1."""
        if not (info.volumes or info.claims):
            return
        if info.volumes:
            self.changes.note(_OfPod(info.volumes, info.pod.template.size_bytes))
        # As few look-ups as can be: a pod may have a hundred thousand, which nearly always it alone uses.
        if sign < 0:
            for volume in info.volumes:
                if (held := self._rows.pop(volume, None)) != row:
                    self._count(volume, held, row, sign)
        elif self._rows.keys().isdisjoint(info.volumes):
            self._rows.update(dict.fromkeys(info.volumes, row))
        else:
            for volume in info.volumes:
                self._count(volume, self._rows.get(volume), row, sign)
        for claim in info.claims:
            count = self.claims.get(claim, 0) + sign
            if count:
                self.claims[claim] = count
            else:
                del self.claims[claim]

    def _count(self, volume: PlacedVolume, held: int | dict[int, int] | None, row: int, sign: int) -> None:
        """Count one more or less where so many use the volume."""
        if held is None and sign > 0:
            self._rows[volume] = row
            return
        rows = {held: 1} if isinstance(held, int) else held or {}
        count_on(rows, row, sign)
        if rows:
            self._rows[volume] = rows
        else:
            self._rows.pop(volume, None)

    def move_row(self, source: int, target: int, pods: Iterable[PodInfo]) -> None:
        """Carry the volumes of the pods on one row to another row, which has none."""
        for info in pods:
            self.add(source, info, -1)
            self.add(target, info)
