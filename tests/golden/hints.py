"""Kind `hint`: what one plugin says of one event, for a pod that it rejected."""

from typing import Any

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource, QueueingHint
from berth.framework.queueing.object_events import node_events, pod_events
from berth.objects.pods.pod import Pod
from berth.queue.requeueing.hints import build_hint_map
from tests.golden.cluster import build, node_of, pod_of, storage_of

RESOURCES = {resource.rsplit("/", 1)[-1]: resource for resource in EventResource}
NOT_REGISTERED, NO_EVENT, QUEUE, SKIP = "event-not-registered", "no-event", "Queue", "Skip"


async def answer(scenario):
    """The event as it is classified, with the plugin's answer to each part, and the answer as a whole."""
    cluster, pod = build(scenario), pod_of(scenario["pod"])
    name = scenario["plugin"]
    plugin = cluster.frameworks[pod.spec.scheduler_name].plugins.by_name.get(name)
    if plugin is None:
        return {}, {name}
    registrations = build_hint_map([plugin]).registrations
    old, new = (decoded(scenario["event"], side) for side in ("old", "new"))
    events = [
        asked(event, registrations, pod, old, new)
        for event in classified(scenario["event"]["resource"], old, new)
    ]
    return {"events": events, "result": together(event["result"] for event in events)}, set()


def decoded(event: dict[str, Any], side: str):
    """One version of the object, None where the event has none."""
    document = event.get(side)
    if document is None:
        return None
    kind = event["resource"]
    if kind in ("Pod", "Node"):
        return pod_of(document) if kind == "Pod" else node_of(document)
    return storage_of(kind, document)


def classified(kind: str, old, new) -> list[ClusterEvent]:
    """The events that the scheduler makes of a change."""
    if old is not None and new is not None:
        if kind == "Pod":
            return pod_events(old, new)
        if kind == "Node":
            return node_events(old, new)
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    return [ClusterEvent(_resource(kind, new or old), action)]


def _resource(kind: str, obj) -> str:
    if kind != "Pod":
        return RESOURCES[kind]
    assert isinstance(obj, Pod)
    return EventResource.ASSIGNED_POD if obj.node_name else EventResource.UNSCHEDULABLE_POD


def asked(event: ClusterEvent, registrations, pod: Pod, old, new):
    """One event with the plugin's answers."""
    hints = [
        {"registered": spelled(registered.action), "hint": said(hint, pod, old, new)}
        for registered, pairs in registrations.items()
        if registered.matches(event)
        for _, hint in pairs
    ]
    answers = {hint["hint"] for hint in hints}
    result = NOT_REGISTERED if not hints else QUEUE if QUEUE in answers else SKIP
    return {
        "resource": str(event.resource),
        "action": spelled(event.action),
        "hints": hints,
        "result": result,
    }


def said(hint, pod: Pod, old, new) -> str:
    """The answer; an error counts as Queue."""
    try:
        return QUEUE if hint(pod, old, new) is QueueingHint.QUEUE else SKIP
    except Exception:  # noqa: BLE001 - as the queue treats it
        return QUEUE


def spelled(action: ActionType) -> str:
    """The actions by upstream's names, in order."""
    if action & ActionType.UPDATE == ActionType.UPDATE:
        plain = [bit.text for bit in action & ~ActionType.UPDATE]
        return "|".join([*plain, ActionType.UPDATE.text])
    return "|".join(bit.text for bit in action)


def together(results) -> str:
    """What comes of all parts of an event."""
    found = list(results)
    for result in (QUEUE, SKIP, NOT_REGISTERED):
        if result in found:
            return result
    return NO_EVENT
