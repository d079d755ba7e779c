"""What the scheduler writes to pod groups, as the adapters provide it."""

from typing import Protocol

from berth.framework.mirrors.group_trees import AnyGroup
from berth.objects.pod_groups import PodGroupCondition


class PodGroupWriter(Protocol):
    """Writes the status of pod groups."""

    async def write_condition(self, group: AnyGroup, condition: PodGroupCondition) -> None:
        """Put the condition among those of the group. Raises: any exception where it did not land."""
