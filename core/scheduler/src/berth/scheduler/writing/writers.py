"""Everything that the core writes to the API server with, refused while this process does not lead."""

import msgspec

from berth.client.api import Api
from berth.client.pods import PodWrites
from berth.client.resources import POD_GROUPS, Resource
from berth.client.transport import Transport
from berth.client.write_guard import WriteGuard
from berth.framework.ports.background import Background
from berth.scheduler.writing.claim_writer import ApiClaimWriter
from berth.scheduler.writing.pod_group_writer import ApiPodGroupWriter
from berth.scheduler.writing.pod_writer import PodWriter
from berth.scheduler.writing.volume_writer import ApiVolumeWriter


class Writers(msgspec.Struct, frozen=True):
    """A writer for each kind of object; `may_write` says whether a write may leave."""

    pods: PodWriter
    volumes: ApiVolumeWriter
    claims: ApiClaimWriter
    pod_groups: ApiPodGroupWriter
    may_write: WriteGuard

    @classmethod
    def over(
        cls,
        transport: Transport,
        may_write: WriteGuard,
        background: Background,
        pod_groups: Resource = POD_GROUPS,
    ) -> "Writers":
        """Writers that share a transport; what they cannot do at once, they do in the background.

        `pod_groups` are PodGroups in the version that the API server has.
        """
        api = Api(transport)
        return cls(
            PodWriter(PodWrites(transport, may_write=may_write), background),
            ApiVolumeWriter(api, may_write=may_write),
            ApiClaimWriter(api, may_write=may_write),
            ApiPodGroupWriter(api, pod_groups, may_write=may_write),
            may_write,
        )
