"""Where a pod's volumes are, as the labels of a node that reaches them: for proposals of one node more.

Each is only a guess: the engine tries a node with these labels before it is shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from berth.framework.mirrors.store import Store
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_volumes import named_claims
from berth.objects.volumes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_DELIMITER
from berth.objects.volumes.storage import PersistentVolume, PersistentVolumeClaim

MAX_CLAIMS = 20
MAX_VOLUMES = 1000
"""This many volumes are looked through for those that a claim without one could have."""
MAX_PLACES = 3

Labels = Mapping[str, str]


class ExplainedVolumes(msgspec.Struct, frozen=True):
    """Reads claims and volumes as the watches brought them."""

    claims: Store[PersistentVolumeClaim]
    volumes: Store[PersistentVolume]

    def of(self, pod: Pod) -> Sequence[Labels]:
        """Labels with which a node may be where the pod's volumes are, or one that its claims may get.

        Cost: O(claims + volumes), of which so many are looked at.
        """
        named = named_claims(pod)[:MAX_CLAIMS]
        claims = [claim for name in named if (claim := self.claims.get(name, pod.namespace)) is not None]
        bound: dict[str, str] = {}
        for claim in claims:
            volume = self.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
            if volume is not None:
                bound |= place_of(volume)
        unbound = [claim for claim in claims if not claim.spec.volume_name]
        places: dict[tuple[tuple[str, str], ...], Labels] = {}
        for found in self._free(unbound) if unbound else ({},):
            place = bound | found
            if place:
                places.setdefault(tuple(sorted(place.items())), place)
            if len(places) == MAX_PLACES:
                break
        return list(places.values())

    def _free(self, claims: Sequence[PersistentVolumeClaim]) -> Iterator[dict[str, str]]:
        """Where volumes of the claims' classes are that belong to no other claim."""
        classes = {claim.storage_class for claim in claims}
        for volume in islice(self.volumes, MAX_VOLUMES):
            if volume.storage_class not in classes:
                continue
            if volume.spec.claim_ref is None or any(map(volume.kept_for, claims)):
                yield place_of(volume)


def place_of(volume: PersistentVolume) -> dict[str, str]:
    """Labels of a node that reaches the volume: of several places the first."""
    labels = volume.metadata.labels
    found = {
        key: labels[key].split(ZONES_DELIMITER)[0]
        for key in (BETA_ZONE, BETA_REGION, ZONE, REGION)
        if key in labels
    }
    affinity = volume.spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required else ()
    for requirement in terms[0].match_expressions if terms else ():
        if requirement.operator == "In" and requirement.values:
            found[requirement.key] = requirement.values[0]
    return found
