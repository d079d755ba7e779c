"""Volumes of placed pods: which nodes have a pod with which claim, disk or volume."""

from collections.abc import Iterable, Iterator, Mapping

from berth.objects.pod_volumes import PlacedVolume
from berth.snapshot.bounded_cache import size_of
from berth.snapshot.journal import Journal
from berth.snapshot.pod_info import PodInfo

NOWHERE: Mapping[int, int] = {}


class PlacedVolumes:
    """Rows by volume; pods without volumes cost nothing.

    `changes` names each volume that came to a row or left one.
    """

    def __init__(self) -> None:
        self._rows: dict[PlacedVolume, dict[int, int]] = {}
        self.changes: Journal[PlacedVolume] = Journal(size_of=size_of)
        self.claims: dict[str, int] = {}
        """How many placed pods use each PersistentVolumeClaim, by `namespace/name`."""

    def __iter__(self) -> Iterator[PlacedVolume]:
        return iter(self._rows)

    def rows(self, volume: PlacedVolume) -> Mapping[int, int]:
        """The rows with pods that use the volume, and how many of them there are."""
        return self._rows.get(volume, NOWHERE)

    def add(self, row: int, info: PodInfo, sign: int = 1) -> None:
        """Count a pod in on that row, or out where `sign` is -1."""
        for volume in info.volumes:
            rows = self._rows.setdefault(volume, {})
            count = rows.get(row, 0) + sign
            if count:
                rows[row] = count
            else:
                rows.pop(row, None)
                if not rows:
                    del self._rows[volume]
            self.changes.note(volume)
        for claim in info.claims:
            count = self.claims.get(claim, 0) + sign
            if count:
                self.claims[claim] = count
            else:
                del self.claims[claim]

    def move_row(self, source: int, target: int, pods: Iterable[PodInfo]) -> None:
        """Carry the volumes of the pods on one row to another row, which has none."""
        for info in pods:
            self.add(source, info, -1)
            self.add(target, info)
