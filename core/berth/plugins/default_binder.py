"""DefaultBinder: bind by creating the pod's Binding.

Source: pkg/scheduler/framework/plugins/defaultbinder (Kubernetes v1.36); spec/plugins.md 5.17.
"""

from berth.framework.cycle_state import CycleState
from berth.framework.interface import BindPlugin
from berth.framework.status import SUCCESS, Status, failed
from berth.objects.pod import Pod
from berth.plugins.in_tree import InTreePlugin


class DefaultBinder(InTreePlugin, BindPlugin):
    """Bind every pod that no other binder took."""

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Create the binding; the status carries whatever kept it from landing."""
        try:
            await self.handle.writer.bind(pod, node_name, state.binding_annotations)
        except Exception as error:  # noqa: BLE001 - the adapter's errors are its own; the cycle reads them
            return failed(error)
        return SUCCESS
