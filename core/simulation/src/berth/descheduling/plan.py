"""What is to be moved and what is left alone, as plain values that JSON can hold."""

from typing import Final

import msgspec

API_VERSION: Final = "descheduling.berth.dev/v1alpha1"


class Move(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A pod that is to be evicted, and where the scheduler would put the one that is made in its place."""

    pod: str
    uid: str
    from_: str = msgspec.field(name="from")
    to: str
    """One of the best nodes; empty for a pod that ended."""
    or_to: tuple[str, ...] = ()
    """Nodes that score the same, any of which the scheduler may choose; all of them are better."""
    profile: str
    strategy: str
    found: str
    """What is wrong."""
    gain: str
    budgets: tuple[str, ...] = ()
    """PodDisruptionBudgets that the eviction counts against."""
    group: str = ""
    """Moves of one group, which follow each other, are worth something only together."""
    makes_room_for: dict[str, str] = {}
    """Pods that waited, and the nodes that they get once the pod is gone."""


class LeftAlone(msgspec.Struct, rename="camel", frozen=True, order=True):
    """A pod that stands badly and stays, and why."""

    pod: str
    node: str
    strategy: str
    found: str
    why: str


class IdleStrategy(msgspec.Struct, rename="camel", frozen=True):
    """A strategy that found no pod that stands badly, and why not."""

    profile: str
    strategy: str
    why: str


class DeschedulePlan(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The moves in the order in which they are to be made."""

    api_version: str = API_VERSION
    kind: str = "DeschedulingPlan"
    nodes: int
    pods: int
    moves: list[Move]
    left_alone: list[LeftAlone]
    idle: list[IdleStrategy] = []
    notes: list[str] = []
    failures: list[str] = []
    """Strategies that proposed nothing because what they go by could not be had, with why and a remedy."""
