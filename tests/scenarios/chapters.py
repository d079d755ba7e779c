"""The chapters of docs/behaviour, their sections, and where upstream has what they are about."""

from typing import NamedTuple


class Chapter(NamedTuple):
    """A page of docs/behaviour: its title, upstream's files below pkg/scheduler, and the sections, if any."""

    title: str
    page: str
    sources: tuple[str, ...]
    sections: tuple[str, ...]


CHAPTERS = {
    "1": Chapter(
        "Watched objects and cluster events",
        "events",
        ("eventhandlers.go", "framework/events.go", "framework/types.go", "scheduler.go"),
        (
            "Resources of events",
            "Actions",
            "Labels, and events of their own",
            "From a pod's update to events",
            "From a node's update to events",
            "Which registration an event matches",
            "What is watched",
            "Caches in front of the handlers",
            "Waiting for the first lists",
            "Events that in-tree plugins register",
            "Handlers of nodes",
            "Handlers of pods",
            "Metrics of the handlers",
        ),
    ),
    "2": Chapter(
        "The scheduling queue",
        "queue",
        (
            "backend/queue/scheduling_queue.go",
            "backend/queue/active_queue.go",
            "backend/queue/backoff_queue.go",
            "backend/queue/nominator.go",
        ),
        (
            "Where pods wait",
            "What is recorded of a pod",
            "The order of activeQ",
            "How long a pod backs off",
            "Which backoff heap",
            "Gating by PreEnqueue",
            "Moves between the places",
            "Whether an event makes a pod worth another attempt",
            "Moving pods on an event",
            "Pop",
            "Pods in flight and what happens meanwhile",
            "After a failed attempt",
            "Add, update, delete, activate",
            "Nominated pods",
            "Flushes",
            "Metrics of the queue",
        ),
    ),
    "3": Chapter(
        "Cache and snapshot",
        "cache",
        ("backend/cache/cache.go", "backend/cache/snapshot.go", "backend/cache/node_tree.go"),
        (
            "State",
            "Pods",
            "Nodes",
            "Generations",
            "The snapshot of a cycle",
            "What is known of a node",
            "Images",
            "The order of nodes",
            "Metrics and the debugger",
        ),
    ),
    "4": Chapter(
        "The scheduling cycle",
        "scheduling-cycle",
        ("schedule_one.go", "framework/runtime/framework.go", "framework/runtime/batch.go", "extender.go"),
        (
            "One pod",
            "Pods that are skipped",
            "The algorithm",
            "PreFilter",
            "The nominated node",
            "The search",
            "Filter beside nominated pods",
            "How many feasible nodes are looked for",
            "Extenders' filter",
            "Scoring",
            "The choice",
            "The text of a FitError",
            "PostFilter",
            "Failed attempts",
            "Extenders",
            "Equal pods in a row",
        ),
    ),
    "5": Chapter(
        "From Reserve to PostBind",
        "binding-cycle",
        (
            "schedule_one.go",
            "framework/runtime/framework.go",
            "framework/runtime/waiting_pods_map.go",
            "backend/api_dispatcher",
        ),
        (
            "Assume",
            "Reserve",
            "Permit",
            "The binding cycle",
            "Pods that wait at Permit",
            "PreBind",
            "Bind",
            "A binding cycle that fails",
            "The nominated node of a pod that is not bound yet",
            "The patch of a pod's status",
            "Asynchronous API calls",
        ),
    ),
    "6": Chapter(
        "Preemption",
        "preemption",
        (
            "framework/preemption",
            "framework/plugins/defaultpreemption/default_preemption.go",
            "schedule_one_podgroup.go",
        ),
        (
            "Where it begins",
            "Its steps",
            "Who may preempt",
            "The dry run",
            "The choice of a node",
            "What is done",
            "Extenders",
            "Preemption for pod groups",
        ),
    ),
    "7": Chapter(
        "Pod groups",
        "pod-groups",
        (
            "schedule_one_podgroup.go",
            "backend/cache/podgroupstate.go",
            "framework/plugins/gangscheduling/gangscheduling.go",
        ),
        (
            "The API",
            "Basic groups and gangs",
            "What is known of a group",
            "Building the group",
            "One by one",
            "By placement",
            "What becomes of the result",
            "The plugin GangScheduling",
        ),
    ),
    "9": Chapter("What is atomic", "atomicity", (), ()),
    "10": Chapter("Oddities that are kept", "oddities", (), ()),
    "11": Chapter(
        "Cases, worked out",
        "cases",
        (),
        (
            "Events",
            "Backoff",
            "The queue",
            "Nominated pods",
            "The cache",
            "The scheduling cycle",
            "The binding cycle",
            "Preemption",
            "Pod groups",
        ),
    ),
}
"""By the number that their rules begin with."""
