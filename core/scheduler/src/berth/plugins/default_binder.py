"""DefaultBinder: bind by creating the pod's Binding.

Source: pkg/scheduler/framework/plugins/defaultbinder (Kubernetes v1.36).
"""

from collections.abc import Callable

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import DirectBindPlugin
from berth.framework.status import SUCCESS, Status, failed
from berth.objects.pods.pod import Pod
from berth.plugins.in_tree import InTreePlugin


class DefaultBinder(InTreePlugin, DirectBindPlugin):
    """Bind every pod that no other binder took."""

    def begin_bind(
        self, state: CycleState, pod: Pod, node_name: str, done: Callable[[Status], object]
    ) -> None:
        """Create the binding; the status carries whatever kept it from landing."""

        def bound(error: Exception | None) -> None:
            done(SUCCESS if error is None else failed(error))

        self.handle.writer.bind(pod, node_name, bound, state.binding_annotations)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """The same, for who has to wait for it."""
        outcome = self.handle.background.outcome()
        self.begin_bind(state, pod, node_name, outcome.set)
        status: Status = await outcome
        return status
