"""The kinds of the group: what each is about, where it is served, and how `kubectl get` prints it.

Called by: discovery and pages, which serve them; the command line, which asks for them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

GROUP = "explain.berth.dev"
VERSION = "v1alpha1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{GROUP_VERSION}"

DEFAULT_PROFILE = "default-scheduler"
"""The profile of pods that name none, and the one that is meant where a user names none."""

Json = dict[str, Any]


class TableColumn(NamedTuple):
    """A column of a Table, and where its cell is found in the document."""

    name: str
    about: str
    cell: Callable[[Json], Any]
    type: str = "string"


class ExplainKind(NamedTuple):
    """A kind of documents; each is named like the object that it is about."""

    name: str
    resource: str
    singular: str
    subject: str
    """What the object is, with its article."""
    namespaced: bool
    about: str
    columns: tuple[TableColumn, ...]

    def path(self, namespace: str, name: str) -> str:
        """Where the document about one object is."""
        return self.collection(quote(namespace, safe="")) + f"/{quote(name, safe='')}"

    def collection(self, namespace: str) -> str:
        """Where a list would be; "" stands for all namespaces."""
        return f"{ROOT}/namespaces/{namespace}/{self.resource}" if namespace else f"{ROOT}/{self.resource}"

    @property
    def template(self) -> str:
        """The path of one document, with the names of its variable parts in braces."""
        return self.collection("{namespace}" if self.namespaced else "") + "/{name}"


def _field(*names: str) -> Callable[[Json], Any]:
    def cell(document: Json) -> Any:
        found: Any = document
        for name in names:
            found = (found or {}).get(name)
        return "" if found is None else found

    return cell


def _amount(name: str, about: str, *fields: str) -> TableColumn:
    return TableColumn(name, about, _field(*fields), "integer")


_CAUSE = TableColumn("Cause", "Why it is so.", _field("cause"))

POD = ExplainKind(
    "Explanation",
    "podexplanations",
    "podexplanation",
    "a pod",
    namespaced=True,
    about="Why a pod is on its node, or on none.",
    columns=(
        TableColumn("Scheduler", "The profile that schedules it.", _field("profile")),
        TableColumn("State", "Where it stands on its way to a node.", _field("state", "kind")),
        _CAUSE,
    ),
)
POD_GROUP = ExplainKind(
    "PodGroupExplanation",
    "podgroupexplanations",
    "podgroupexplanation",
    "a PodGroup",
    namespaced=True,
    about="Where the pods of a group stand, and what those lack that have no node.",
    columns=(
        _amount("Pods", "The pods of the group.", "pods"),
        _amount("Scheduled", "Those of them that have a node.", "scheduled"),
        _amount("Fitting", "Those of the others that would find a node now, placed together.", "fitTogether"),
        _CAUSE,
    ),
)
NODE = ExplainKind(
    "NodeExplanation",
    "nodeexplanations",
    "nodeexplanation",
    "a node",
    namespaced=False,
    about="What is free on a node, and which of the waiting pods it would take.",
    columns=(
        _amount("Pods", "The pods on the node.", "pods"),
        _amount("Waiting", "The pods that wait for a node.", "waiting"),
        _amount("Fitting", "Those of them that this node would take, one at a time.", "fitting"),
        _CAUSE,
    ),
)
PROFILE = ExplainKind(
    "ProfileExplanation",
    "profileexplanations",
    "profileexplanation",
    "a profile",
    namespaced=False,
    about="What the pods of a profile met that were tried lately.",
    columns=(_amount("Pods", "The pods that were tried lately.", "pods"), _CAUSE),
)
QUEUE = ExplainKind(
    "QueueOverview",
    "queues",
    "queue",
    "a profile",
    namespaced=False,
    about="Which pods wait where in the queue of the scheduler that schedules a profile.",
    columns=(
        _amount("Active", "The pods that are tried next.", "counts", "active"),
        _amount("Backoff", "The pods that back off after a failed attempt.", "counts", "backoff"),
        _amount("Unschedulable", "The pods that wait for an event.", "counts", "unschedulable"),
        _amount("Gated", "The pods that a plugin keeps out.", "counts", "gated"),
    ),
)
KINDS = (POD, POD_GROUP, NODE, PROFILE, QUEUE)
