"""Write Berth scheduler plugins as plain Python functions.

A whole plugin:

    from berth_sdk import Node, Plugin, Pod, serve

    class TeamNodes(Plugin):
        name = "team-nodes"

        def filter(self, pod: Pod, node: Node) -> str | None:
            team = node.labels.get("team")
            return None if team in (None, pod.labels.get("team")) else "node(s) belong to another team"

    serve(TeamNodes(), "unix:/run/berth/team-nodes.sock")
"""

from msgspec import Meta

import berth_sdk.child_processes  # noqa: F401 - before gRPC is imported
from berth_sdk.clock import Clock, Timer
from berth_sdk.errors import AddressError, ArgumentError, ContractError, SdkError
from berth_sdk.metrics import Metric
from berth_sdk.nodes import Nodes
from berth_sdk.objects import Node, Pod
from berth_sdk.outcomes import (
    SKIP,
    SUCCESS,
    Action,
    Answer,
    ClusterEvent,
    Code,
    Codes,
    CycleOutcome,
    GroupPreemption,
    MetadataPatch,
    Nomination,
    Normalization,
    PlacementProgress,
    Placements,
    PodGroup,
    PodKey,
    PodStage,
    Points,
    ProposedPlacement,
    Reason,
    Scores,
    SortKey,
    Status,
    Verdicts,
    Wait,
)
from berth_sdk.plugin import Call, EventInterest, Plugin, WatchedResource, current_call, plugin
from berth_sdk.program import flags, main
from berth_sdk.serving import Server, serve
from berth_sdk.state import ObjectKey, PlacedPod
from berth_sdk.tracing import Tracing

__all__ = [
    "SKIP",
    "SUCCESS",
    "Action",
    "AddressError",
    "Answer",
    "ArgumentError",
    "Call",
    "Clock",
    "ClusterEvent",
    "Code",
    "Codes",
    "ContractError",
    "CycleOutcome",
    "EventInterest",
    "GroupPreemption",
    "Meta",
    "MetadataPatch",
    "Metric",
    "Node",
    "Nodes",
    "Nomination",
    "Normalization",
    "ObjectKey",
    "PlacedPod",
    "PlacementProgress",
    "Placements",
    "Plugin",
    "Pod",
    "PodGroup",
    "PodKey",
    "PodStage",
    "Points",
    "ProposedPlacement",
    "Reason",
    "Scores",
    "SdkError",
    "Server",
    "SortKey",
    "Status",
    "Timer",
    "Tracing",
    "Verdicts",
    "Wait",
    "WatchedResource",
    "current_call",
    "flags",
    "main",
    "plugin",
    "serve",
]
