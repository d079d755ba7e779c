"""The core's writes to pod groups.

Source: pkg/scheduler/schedule_one_podgroup.go updatePodGroupCondition; util/utils.go PatchPodGroupStatus
(Kubernetes v1.36).
"""

import logging
from typing import Final

import msgspec

from berth.client.api import STRATEGIC_PATCH, Api
from berth.client.errors import ClientError
from berth.client.pods import STATUS_RETRY
from berth.client.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, Resource
from berth.client.wire import encode
from berth.client.write_guard import WriteGuard
from berth.objects.pod_groups import PodGroup, PodGroupCondition

log = logging.getLogger(__name__)

TREE: Final = "CompositePodGroupInitiallyScheduled"
TREES_ARE_NOT_FOLLOWED: Final = (
    "this scheduler does not schedule CompositePodGroups: the pod groups below are scheduled one by one, "
    "without the policy, the topology and the priority of the groups above them"
)
MAX_DEPTH: Final = 4
"""Of a tree of groups, the pod groups included. Source: scheduling.k8s.io/v1alpha3 WorkloadMaxTreeDepth."""


class _Spec(msgspec.Struct, rename="camel"):
    parent_composite_pod_group_name: str = ""


class _Tree(msgspec.Struct):
    spec: _Spec


class ApiPodGroupWriter:
    """Implements berth.framework.ports.pod_group_writing.PodGroupWriter.

    `may_write` is asked before each write. With `trees` the owner of a CompositePodGroup learns that it is
    not followed, where the scheduler says something of a pod group below it: kube-scheduler would write that
    condition.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource = POD_GROUPS,
        *,
        may_write: WriteGuard | None = None,
        trees: bool = False,
    ) -> None:
        self.resource = resource
        """PodGroups in the version that the API server has."""
        self._api = api
        self._may_write = may_write
        self._trees = trees

    async def write_condition(self, group: PodGroup, condition: PodGroupCondition) -> None:
        """Put the condition among those of that very group. Raises: ClientError."""
        # The API requires a condition to have a message, be it empty.
        written = {"message": condition.message, **msgspec.to_builtins(condition)}
        patch = {"metadata": {"uid": group.uid}, "status": {"conditions": [written]}}
        await self._patch(self.resource, group.namespace, group.name, patch)
        if self._trees and group.spec.parent_composite_pod_group_name:
            await self._write_above(group, condition.last_transition_time)

    async def _write_above(self, group: PodGroup, now: str | None) -> None:
        """Say at each CompositePodGroup above the group that it is not followed."""
        condition = {
            "type": TREE,
            "status": "False",
            "reason": "SchedulerError",
            "message": TREES_ARE_NOT_FOLLOWED,
            "lastTransitionTime": now,
        }
        name = group.spec.parent_composite_pod_group_name
        for _ in range(MAX_DEPTH - 1):
            try:
                patch = {"status": {"conditions": [condition]}}
                answer = await self._patch(COMPOSITE_POD_GROUPS, group.namespace, name, patch)
                name = msgspec.json.decode(answer, type=_Tree).spec.parent_composite_pod_group_name
            except (ClientError, msgspec.DecodeError) as error:
                log.warning(
                    "composite pod group's status not written group=%s/%s error=%s",
                    group.namespace,
                    name,
                    error,
                )
                return
            if not name:
                return

    async def _patch(self, resource: Resource, namespace: str, name: str, patch: object) -> bytes:
        return await self._api.call(
            "PATCH",
            resource.path(namespace, name, "status"),
            encode(patch),
            content_type=STRATEGIC_PATCH,
            retry=STATUS_RETRY,
            guard=self._may_write,
        )
