"""The core's writes to pod groups.

Source: pkg/scheduler/schedule_one_podgroup.go updatePodGroupCondition; util/utils.go PatchPodGroupStatus
(Kubernetes v1.36).
"""

import msgspec

from berth.client.api import STRATEGIC_PATCH, Api
from berth.client.pods import STATUS_RETRY
from berth.client.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, Resource
from berth.client.wire import encode
from berth.client.write_guard import WriteGuard
from berth.framework.mirrors.group_trees import AnyGroup
from berth.objects.pod_groups import PodGroup, PodGroupCondition


class ApiPodGroupWriter:
    """Implements berth.framework.ports.pod_group_writing.PodGroupWriter; `may_write` is asked first."""

    def __init__(
        self,
        api: Api,
        resource: Resource = POD_GROUPS,
        *,
        may_write: WriteGuard | None = None,
    ) -> None:
        self.resource = resource
        """PodGroups in the version that the API server has."""
        self._api = api
        self._may_write = may_write

    async def write_condition(self, group: AnyGroup, condition: PodGroupCondition) -> None:
        """Put the condition among those of that very group. Raises: ClientError."""
        # The API requires a condition to have a message, be it empty.
        written = {"message": condition.message, **msgspec.to_builtins(condition)}
        patch = {"metadata": {"uid": group.uid}, "status": {"conditions": [written]}}
        resource = self.resource if isinstance(group, PodGroup) else COMPOSITE_POD_GROUPS
        await self._api.call(
            "PATCH",
            resource.path(group.namespace, group.name, "status"),
            encode(patch),
            content_type=STRATEGIC_PATCH,
            retry=STATUS_RETRY,
            guard=self._may_write,
        )
