"""What the scheduler writes to pod groups, as the adapters provide it."""

from typing import Protocol

from berth.objects.pod_groups import PodGroup, PodGroupCondition


class PodGroupWriter(Protocol):
    """Writes the status of pod groups."""

    async def write_condition(self, group: PodGroup, condition: PodGroupCondition) -> None:
        """Put the condition among those of the group. Raises: any exception where it did not land."""
