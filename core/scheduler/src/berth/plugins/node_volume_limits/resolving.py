"""From a claim to the volume that a driver counts, or will count once the claim has one."""

from typing import NamedTuple, TypeAlias

import msgspec

from berth.framework.mirrors.listers import Listers
from berth.objects.pods.pod_volumes import ClaimUse, Disk, PlacedVolume
from berth.objects.volumes.csi_migration import BY_PLUGIN, CsiVolume, csi_volume
from berth.objects.volumes.storage import PersistentVolumeClaim


class Missing(NamedTuple):
    """There is no such claim."""

    text: str


class Broken(NamedTuple):
    """A claim that the pod must not use; the text is the error's."""

    text: str


Counted: TypeAlias = CsiVolume | Missing | Broken | None
"""None: no driver counts it."""


class AnswerSource(NamedTuple):
    """An object that an answer was made of."""

    kind: str
    key: str


CLAIM, VOLUME, STORAGE_CLASS = "claim", "volume", "class"


class Resolver(msgspec.Struct, frozen=True):
    """Looks claims up in the watched objects."""

    listers: Listers

    def counted(self, volume: PlacedVolume) -> Counted:
        """What a volume of a pod counts as."""
        if isinstance(volume, ClaimUse):
            return self._claimed(volume)
        return None if isinstance(volume, Disk) else volume

    def sources(self, volume: PlacedVolume) -> tuple[AnswerSource, ...]:
        """The objects that the answer was made of, and those whose coming would change it."""
        if not isinstance(volume, ClaimUse):
            return ()
        claim = self.listers.persistent_volume_claims.by_key(volume.key)
        if claim is None:
            return (AnswerSource(CLAIM, volume.key),)
        return (
            AnswerSource(CLAIM, volume.key),
            AnswerSource(VOLUME, claim.spec.volume_name),
            AnswerSource(STORAGE_CLASS, claim.storage_class),
        )

    def _claimed(self, use: ClaimUse) -> Counted:
        if not use.name:
            return Broken("PersistentVolumeClaim had no name")
        claim = self.listers.persistent_volume_claims.by_key(use.key)
        if claim is None:
            return Missing(f'looking up PVC {use.key}: persistentvolumeclaim "{use.name}" not found')
        if not use.owned(claim):
            return Broken(use.not_owned)
        volume = self.listers.persistent_volumes.get(claim.spec.volume_name)
        return csi_volume(volume) if volume else self._by_class(claim)

    def _by_class(self, claim: PersistentVolumeClaim) -> CsiVolume | None:
        """The volume that the class is going to make, known by its claim."""
        storage_class = self.listers.storage_classes.get(claim.storage_class)
        if storage_class is None:
            return None
        migration = BY_PLUGIN.get(storage_class.provisioner)
        if migration is None:
            return CsiVolume(storage_class.provisioner, "", claim.key)
        return CsiVolume(migration.driver, "", claim.key) if migration.counted else None
