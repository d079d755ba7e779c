"""Node selectors and node affinity: which nodes a pod, a volume or a profile allows.

Source: component-helpers scheduling/corev1/nodeaffinity (Kubernetes v1.36).
"""

from berth.objects.api_object import ApiObject, Int32
from berth.objects.label_selector import Requirement


class NodeSelectorTerm(ApiObject, frozen=True):
    """One alternative: all of its requirements on labels and on fields."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it asks nothing, in which case it matches no node."""
        return not self.match_expressions and not self.match_fields


class NodeSelector(ApiObject, frozen=True):
    """Alternatives, of which one has to match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(ApiObject, frozen=True):
    """A preference worth `weight` where it matches."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiObject, frozen=True):
    """What a pod requires and prefers of its node; None distinguishes an absent list from an empty one."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None

    @property
    def required(self) -> NodeSelector | None:
        """The selector that has to match."""
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...] | None:
        """The preferences, None where the field is absent."""
        return self.preferred_during_scheduling_ignored_during_execution
