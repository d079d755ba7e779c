"""Each pod was bound once, by the events that scheduling leaves: one `Scheduled` for each bound pod.

The API refuses a second binding of a pod, so a scheduler that tried twice leaves a trace here only if both
seemed to succeed. An event that is missing means a scheduler that ended between binding and event, which is
allowed where the caller says so.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from berth.demo.checker.documents import Document, key_of, node_of, uid_of
from berth.demo.checker.report import Rule, Violation

_ASSIGNED = re.compile(r"Successfully assigned (\S+) to (\S+)")


def check_bindings(
    pods: Sequence[Document],
    events: Sequence[Document],
    *,
    placed_by_others: Collection[str],
    missing_events_allowed: bool,
) -> Iterator[Violation]:
    """Compare each pod's node with the `Scheduled` events that regard its uid."""
    scheduled = _scheduled_by_uid(events)
    for pod in pods:
        subject = f"pod {key_of(pod)}"
        found, node = scheduled.get(uid_of(pod), []), node_of(pod)
        missing_is_fine = missing_events_allowed or key_of(pod) in placed_by_others
        if node and not found and not missing_is_fine:
            yield Violation(Rule.BOUND_ONCE, subject, f"is on node {node} without a Scheduled event")
        if (times := sum(map(_times, found))) > 1:
            nodes = ", ".join(_node_of_event(event) for event in found)
            yield Violation(Rule.BOUND_ONCE, subject, f"was scheduled {times} times, to {nodes}")
        for event in found:
            if _node_of_event(event) != node:
                text = f"was scheduled to {_node_of_event(event)} and is on {node or 'no node'}"
                yield Violation(Rule.BOUND_ONCE, subject, text)


def bound_with_event(bound: Sequence[Document], events: Sequence[Document]) -> list[Document]:
    """Give the bound pods that have a `Scheduled` event."""
    scheduled = _scheduled_by_uid(events)
    return [pod for pod in bound if uid_of(pod) in scheduled]


def _scheduled_by_uid(events: Sequence[Document]) -> dict[str, list[Document]]:
    result = defaultdict(list)
    for event in events:
        regarding = event.get("regarding") or event.get("involvedObject") or {}
        if event.get("reason") == "Scheduled":
            result[str(regarding.get("uid") or "")].append(event)
    return result


def _times(event: Document) -> int:
    """Count the occurrences that the event stands for: equal events are joined into a series."""
    counts = ((event.get("series") or {}).get("count"), event.get("deprecatedCount"), event.get("count"))
    return max(1, *(int(count or 0) for count in counts))


def _node_of_event(event: Document) -> str:
    note = str(event.get("note") or event.get("message") or "")
    match = _ASSIGNED.fullmatch(note)
    return match[2] if match else f"a node it does not name ({note!r})"
