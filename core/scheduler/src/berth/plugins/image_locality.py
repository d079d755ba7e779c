"""ImageLocality: prefer nodes that already have the pod's images.

An image counts for its size times the share of nodes that have it, so that a single node with a large image
does not draw every pod to itself.

Source: pkg/scheduler/framework/plugins/imagelocality (Kubernetes v1.36).
"""

from collections.abc import Hashable

import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import MAX_NODE_SCORE, Depends, ScorePlugin, Scores
from berth.objects.image_names import normalized_image_name
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.plugins.in_tree import InTreePlugin
from berth.snapshot.snapshot import Snapshot

MIB = 2**20
LOW_BYTES = 23 * MIB
HIGH_BYTES_PER_CONTAINER = 1000 * MIB


class ImageLocality(InTreePlugin, ScorePlugin):
    """Score 0 to 100 by the bytes of the pod's images that need no pull."""

    depends = Depends.OBJECT

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """Between no more than a small image (0) and a large one for each container (100).

        Image volumes count as containers, or not, by the release's rule.
        """
        del state
        images, containers = pod.template.derived(wanted_images)
        users = len(images) if self.handle.rules.image_volumes_count_as_containers else containers
        return nodes.answer((self.name, images, users), lambda table: locality(images, users, table))

    def sign_pod(self, pod: Pod) -> Hashable:
        """The images, each as often as it is used, and the number of containers."""
        return pod.template.derived(wanted_images)


def wanted_images(template: PodTemplate) -> tuple[tuple[str, ...], int]:
    """The images of containers, init containers and image volumes, sorted; the number of both containers."""
    spec = template.spec
    containers = (*spec.init_containers, *spec.containers)
    volumes = (volume.get("image") for volume in spec.volumes)
    references = [c.image for c in containers] + [v.get("reference", "") for v in volumes if v is not None]
    return tuple(sorted(normalized_image_name(name) for name in references)), len(containers)


def locality(images: tuple[str, ...], users: int, nodes: Snapshot) -> Scores:
    """The score of every node, for images of so many containers and volumes.

    Shapes: result int64 (n,).
    """
    high = HIGH_BYTES_PER_CONTAINER * users
    present_bytes = np.zeros(len(nodes), dtype=np.int64)
    for name in images:
        on = nodes.image_on(name)
        if on is not None:
            spread = nodes.images.holders(name) / len(nodes)
            # Bytes beyond the highest score change nothing, and their sum may be more than 64 bits hold.
            present_bytes += on * max(-high, min(high, int(nodes.images.size_bytes(name) * spread)))
    scores: Scores = MAX_NODE_SCORE * (present_bytes.clip(LOW_BYTES, high) - LOW_BYTES) // (high - LOW_BYTES)
    return scores
