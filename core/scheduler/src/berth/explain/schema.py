"""What an explanation says: apiVersion explain.berth.dev/v1alpha1.

Fields are added, never renamed or given another meaning within a version. Times are RFC 3339 in UTC; lists
are bounded, and what is left out is counted. Described for users in docs/explain.md.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

API_VERSION = "explain.berth.dev/v1alpha1"


class StateKind(StrEnum):
    """Where a pod stands on its way to a node."""

    GATED = "Gated"
    NOT_QUEUED = "NotQueued"
    ACTIVE = "Active"
    BACKING_OFF = "BackingOff"
    UNSCHEDULABLE = "Unschedulable"
    SCHEDULING = "Scheduling"
    WAITING_AT_PERMIT = "WaitingAtPermit"
    IN_PRE_BIND = "InPreBind"
    BINDING = "Binding"
    BOUND = "Bound"
    NOT_OURS = "NotOurs"
    DELETING = "Deleting"
    GONE = "Gone"


class Shown(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an answer, with its fields in camel case."""


class Wait(Shown, frozen=True, kw_only=True):
    """A plugin that a pod waits for, what for in its own words, and until when."""

    plugin: str
    message: str = ""
    until: str = ""


class Awaited(Shown, frozen=True, kw_only=True):
    """What has to happen to which resource for a plugin that rejected the pod to look at it again."""

    plugin: str
    resource: str
    actions: list[str]


class Nomination(Shown, frozen=True, kw_only=True):
    """The node that was promised to a pod, and the pods on it that are being deleted."""

    node: str
    leaving: list[str] = []
    leaving_count: int = 0


class PodState(Shown, frozen=True, kw_only=True):
    """Where the pod stands; only what applies to its kind is filled in."""

    kind: StateKind
    since: str = ""
    until: str = ""
    node: str = ""
    attempts: int = 0
    position: int = 0
    """The place in the active queue, from 1 on."""
    gates: list[str] = []
    rejected_by: list[str] = []
    waits_for: list[Wait] = []
    awaited: list[Awaited] = []
    nomination: Nomination | None = None
    profiles: list[str] = []
    """The profiles that there are, where the pod names none of them."""
    deleting: bool = False


class PastAttempt(Shown, frozen=True, kw_only=True):
    """One attempt of the last few."""

    attempt: int
    result: str
    started_at: str
    node: str = ""
    score: int | None = None
    message: str = ""
    rejected_by: list[str] = []
    feasible_nodes: int = 0
    evaluated_nodes: int = 0
    ignored: list[str] = []
    """Failures of plugins that their failure policies passed over, each with its extension point."""
    not_evaluated: str = ""
    """What ended the attempt before any node was evaluated; empty where nodes were."""
    queued_milliseconds: float = 0.0
    cycle_milliseconds: float = 0.0
    total_milliseconds: float = 0.0
    trace_id: str = ""
    """Empty where the attempt has no trace that is exported."""


class Refusal(Shown, frozen=True, kw_only=True):
    """Who turns nodes down, and why; `resolvable` where evicting pods could help."""

    plugin: str
    reasons: list[str]
    resolvable: bool = False


class NodeGroup(Shown, frozen=True, kw_only=True):
    """Nodes that are turned down alike, and some of their names."""

    count: int
    refusals: list[Refusal]
    nodes: list[str]


class ScorePart(Shown, frozen=True, kw_only=True):
    """What one plugin gave, before and after normalising, and what it weighs in the total."""

    plugin: str
    raw: int
    score: int
    weighted: int


class ScoredNode(Shown, frozen=True, kw_only=True):
    """A node that fits; `place` counts from 1 on, `own` marks the node that the pod is on."""

    name: str
    total: int
    place: int
    own: bool = False
    parts: list[ScorePart] = []


class NodeVerdicts(Shown, frozen=True, kw_only=True):
    """Every node's verdict as the cluster stands now."""

    total: int
    feasible: int
    message: str = ""
    """What kube-scheduler's event would say, or what kept the pod from being tried."""
    all_reasons: bool = False
    """Whether every plugin was asked about every node, not only until one turned it down."""
    refusals: list[Refusal] = []
    """Of the pod itself, by PreFilter: they hold for every node, and count for none of `groups`."""
    groups: list[NodeGroup] = []
    groups_left_out: int = 0
    scored: list[ScoredNode] = []
    scored_left_out: int = 0


class Target(Shown, frozen=True, kw_only=True):
    """The object that is to be changed; without a name, one of that kind that is to be made.

    A Plugin is one that counts something, in an object that only its reason names.
    """

    kind: str
    name: str = ""
    namespace: str = ""


class Proposal(Shown, frozen=True, kw_only=True):
    """One change that makes the pod fit, tried by the engine.

    `patch` is a JSON patch (RFC 6902) of the target, empty for a plugin. A running pod's spec can hardly be
    changed: the same change belongs into its template.
    """

    kind: str
    sentence: str
    target: Target
    patch: list[dict[str, Any]]
    nodes: list[str]
    node_count: int
    evicts: list[str] = []


class Explanation(Shown, frozen=True, kw_only=True, tag_field="kind", tag="Explanation"):
    """What is known of a pod: the cause first, then what to do about it, then what both rest on."""

    api_version: str = API_VERSION
    pod: str
    uid: str = ""
    profile: str = ""
    release: str = ""
    """Of Kubernetes, whose kube-scheduler is followed."""
    cause: str
    remedy: str = ""
    state: PodState
    attempts: list[PastAttempt] = []
    nodes: NodeVerdicts | None = None
    """None for a pod that none of our profiles is for."""
    proposals: list[Proposal] = []
    proposals_cut_short: str = ""
    """Why not everything was tried, empty where it was."""


def rfc3339(seconds: float) -> str:
    """The moment as the API writes it. Units: seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ExplainedClass(Shown, frozen=True, kw_only=True):
    """Pods that are written alike, and what the engine says of one of them."""

    profile: str
    count: int
    pods: list[str]
    cause: str = ""
    remedy: str = ""
    fits: bool = False
    refusals: list[Refusal] = []


class TreeGroup(Shown, frozen=True, kw_only=True):
    """A group of a tree: the root has level 0.

    `needed` are the pods, or the groups right below, that it needs; `there` those that there are, of groups
    the complete ones. `pods` and `scheduled` count all below it.
    """

    group: str
    type: str
    level: int
    needed: int
    there: int
    pods: int
    scheduled: int
    lacks: str = ""
    """What keeps this branch from being scheduled, empty where nothing is known to."""


class PodGroupExplanation(Shown, frozen=True, kw_only=True, tag_field="kind", tag="PodGroupExplanation"):
    """Where the pods of a group stand, and what those lack that have no node."""

    api_version: str = API_VERSION
    group: str
    cause: str
    min_count: int | None = None
    pods: int = 0
    scheduled: int = 0
    fit_together: int = 0
    """How many of the pods without a node would find one now, placed one after the other."""
    states: dict[str, int] = {}
    classes: list[ExplainedClass] = []
    """The pods that would not, by what they ask for; each is tried beside those that would."""
    cut_short: str = ""
    """Why not all of them were tried, empty where they were."""
    tree: list[TreeGroup] = []
    """The groups of the tree that the group is in, each before those below it; none of a group alone."""


class NodeAmount(Shown, frozen=True, kw_only=True):
    """A resource of a node, in the scheduler's units: thousandths of a core, whole units of the rest."""

    resource: str
    allocatable: int
    requested: int
    free: int


class NodeExplanation(Shown, frozen=True, kw_only=True, tag_field="kind", tag="NodeExplanation"):
    """What is free on a node, and which of the waiting pods it would take."""

    api_version: str = API_VERSION
    node: str
    cause: str
    waiting: int = 0
    """How many pods wait for a node, of all that the answer is about."""
    fitting: int = 0
    """How many of those that were tried this node would take, one at a time."""
    unschedulable: bool = False
    taints: list[str] = []
    pods: int = 0
    allowed_pods: int = 0
    amounts: list[NodeAmount] = []
    nominated: list[str] = []
    classes: list[ExplainedClass] = []
    """The waiting pods, by what they ask for, those first that fit."""
    classes_left_out: int = 0
    cut_short: str = ""
    """Why not all of them were tried, or which scheduler did not answer; empty where all were."""


class Count(Shown, frozen=True, kw_only=True):
    """How many pods met that, and some of them."""

    what: str
    pods: int
    examples: list[str] = []


class ProfileExplanation(Shown, frozen=True, kw_only=True, tag_field="kind", tag="ProfileExplanation"):
    """What the pods of a profile met that were tried lately, by their last attempts."""

    api_version: str = API_VERSION
    profile: str
    cause: str
    pods: int = 0
    results: dict[str, int] = {}
    rejected_by: list[Count] = []
    messages: list[Count] = []
    plugins: dict[str, list[str]] = {}
    """The plugins by extension point, in running order."""
    extenders: list[str] = []


class QueuedPod(Shown, frozen=True, kw_only=True):
    """A pod in the queue."""

    pod: str
    profile: str
    priority: int
    since: str
    attempts: int
    until: str = ""


class QueueOverview(Shown, frozen=True, kw_only=True, tag_field="kind", tag="QueueOverview"):
    """Who waits where: the first of each place, and all of them counted."""

    api_version: str = API_VERSION
    counts: dict[str, int]
    profiles: list[str] = []
    """The profiles whose pods these are: those that one process schedules from one queue."""
    active: list[QueuedPod] = []
    """In the order in which they are tried."""
    backing_off: list[QueuedPod] = []
    unschedulable: list[Count] = []
    """By the plugins that rejected them."""
    gated: list[Count] = []
    """By the plugin that keeps them out."""
    longest_wait: QueuedPod | None = None
