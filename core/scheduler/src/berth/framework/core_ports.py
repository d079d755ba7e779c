"""What a scheduler's core is made with, beside its configuration: all that reaches outside of it."""

import random

import msgspec

from berth.framework.clock import Clock
from berth.framework.handle import ApiWriter, VolumeWriter
from berth.framework.ports.background import Background
from berth.framework.ports.claim_writing import ClaimWriter
from berth.framework.ports.pod_group_writing import PodGroupWriter


class CorePorts(msgspec.Struct, frozen=True, kw_only=True):
    """Writers to the API server, concurrency, time and chance.

    `claims` is needed where devices are allocated, `pod_groups` with the gate GenericWorkload.
    """

    pods: ApiWriter
    volumes: VolumeWriter
    claims: ClaimWriter
    pod_groups: PodGroupWriter
    background: Background
    clock: Clock
    chance: random.Random
