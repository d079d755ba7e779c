"""What a check found."""

from enum import StrEnum

import msgspec


class Rule(StrEnum):
    """What can be violated."""

    UNREADABLE = "unreadable"
    LISTED_TWICE = "listed twice"
    NODE_MISSING = "node missing"
    OVERCOMMITTED = "overcommitted"
    GPU_DEVICES = "gpu devices"
    GPU_MODEL = "gpu model"
    NODE_SELECTOR = "node selector"
    NODE_AFFINITY = "node affinity"
    TAINTS = "taints"
    HOST_PORTS = "host ports"
    BOUND_ONCE = "bound once"


class Violation(msgspec.Struct, frozen=True, order=True):
    """One broken rule: `subject` is a node or pod, `text` says what is wrong with it."""

    rule: Rule
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.text}"


class CheckReport(msgspec.Struct, frozen=True):
    """The violations, sorted, and how much was looked at.

    `active` pods are bound and have not ended; only they take room. `with_event` pods are bound and have an
    event that says so; of the other bound pods nothing is known about a second binding.
    """

    violations: tuple[Violation, ...]
    nodes: int
    pods: int
    bound: int
    active: int
    with_event: int

    @property
    def ok(self) -> bool:
        """Tell whether no rule is violated."""
        return not self.violations

    def lines(self, limit: int = 20) -> list[str]:
        """Say it to a reader: a verdict, then at most `limit` violations."""
        looked_at = f"{self.nodes} nodes, {self.pods} pods, {self.bound} of them bound"
        if self.ok:
            once = ", each once" if self.with_event == self.bound else f", {self.with_event} by an event once"
            return [f"checked {looked_at}{once}: every placement is allowed and no node is overcommitted"]
        left_out = len(self.violations) - limit
        more = [f"  and {left_out} more"] if left_out > 0 else []
        shown = [f"  {violation}" for violation in self.violations[:limit]]
        return [f"checked {looked_at}: {len(self.violations)} violations", *shown, *more]
