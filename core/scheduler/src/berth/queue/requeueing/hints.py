"""Which plugins want to hear of which events, and what they are asked then.

Source: pkg/scheduler/scheduler.go buildQueueingHintMap (Kubernetes v1.36).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    QueueingHintFn,
)
from berth.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from berth.objects.pods.pod import Pod
from berth.queue.errors import EventRegistrationError

log = logging.getLogger(__name__)

EXTENDER = "Extender"

REJECTING_POINTS = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)

NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)

EVERYTHING = tuple(
    ClusterEventWithHint(ClusterEvent(resource, ActionType.ALL))
    for resource in (
        EventResource.POD,
        EventResource.NODE,
        EventResource.PERSISTENT_VOLUME,
        EventResource.PERSISTENT_VOLUME_CLAIM,
        EventResource.CSI_NODE,
        EventResource.CSI_DRIVER,
        EventResource.CSI_STORAGE_CAPACITY,
        EventResource.STORAGE_CLASS,
        EventResource.RESOURCE_CLAIM,
        EventResource.DEVICE_CLASS,
    )
)
POD_GROUPS = ClusterEventWithHint(ClusterEvent(EventResource.POD_GROUP, ActionType.ALL))


class Matching(NamedTuple):
    """An incoming event's label, and the hints to ask about it, by plugin.

    `apart` names those of the plugins that have to be asked about each pod.
    """

    label: str
    hints: Mapping[str, tuple[QueueingHintFn, ...]]
    apart: frozenset[str]


def always_queue(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """The hint of a registration that has none."""
    del pod, old, new
    return QueueingHint.QUEUE


class HintMap:
    """One profile's registrations: event -> (plugin, hint) pairs, in the order of the plugins."""

    __slots__ = ("_apart", "_events", "_gates", "_latest", "_matching", "registrations")

    def __init__(
        self,
        registrations: Mapping[ClusterEvent, list[tuple[str, QueueingHintFn]]],
        apart: Iterable[str] = (),
        gates: Mapping[str, tuple[ClusterEvent, ...]] = MappingProxyType({}),
    ) -> None:
        self.registrations = registrations
        self._gates = gates
        self._apart = frozenset(apart)
        self._matching: dict[ClusterEvent, Matching] = {}
        self._events: dict[str, tuple[ClusterEvent, ...]] = {}
        self._latest: tuple[ClusterEvent, Matching] | None = None

    def matching(self, incoming: ClusterEvent) -> Matching:
        """Whom to ask about an incoming event."""
        # A move pass asks about one and the same event for every pod.
        if self._latest is not None and self._latest[0] is incoming:
            return self._latest[1]
        found = self._matching.get(incoming)
        if found is None:
            hints = self._match(incoming)
            found = Matching(incoming.label, hints, self._apart & hints.keys())
            self._matching[incoming] = found
        self._latest = incoming, found
        return found

    def _match(self, incoming: ClusterEvent) -> dict[str, tuple[QueueingHintFn, ...]]:
        found: dict[str, tuple[QueueingHintFn, ...]] = {}
        for registered, pairs in self.registrations.items():
            if registered.matches(incoming):
                for plugin, hint in pairs:
                    found[plugin] = (*found.get(plugin, ()), hint)
        return found

    def events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """The events that a plugin is registered for."""
        found = self._events.get(plugin)
        if found is None:
            named = [
                event
                for event, pairs in self.registrations.items()
                if any(name == plugin for name, _ in pairs)
            ]
            found = self._events[plugin] = tuple(named)
        return found

    def gate_events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """Those of a plugin's events that may change what its PreEnqueue answers."""
        return self._gates.get(plugin, ())

    def awaited_by(self, plugin: str) -> Iterator[ClusterEvent]:
        """The events that may help pods that a plugin rejected.

        A plugin that registers for more than it waits for, because it says later what that is, has hints with
        `declared`: those events at the moment.
        """
        for event, pairs in self.registrations.items():
            for name, hint in pairs:
                if name == plugin:
                    declared = getattr(hint, "declared", None)
                    yield from (event,) if declared is None else declared()


NO_HINTS = HintMap({})


def build_hint_map(
    plugins: Iterable[Plugin], *, extenders: bool = False, generic_workload: bool = False
) -> HintMap:
    """The registrations of a profile's plugins, each plugin given once.

    `extenders` says whether any extender is configured, `generic_workload` whether that gate is on.

    Raises: EventRegistrationError, with all failures.
    """
    full = (*EVERYTHING, POD_GROUPS) if generic_workload else EVERYTHING
    registrations: dict[ClusterEvent, list[tuple[str, QueueingHintFn]]] = {}
    failures: list[str] = []
    apart: list[str] = []
    gates: dict[str, tuple[ClusterEvent, ...]] = {}
    if extenders:
        _register(registrations, EXTENDER, full)
    for plugin in plugins:
        if not isinstance(plugin, REJECTING_POINTS):
            continue
        try:
            wanted = plugin.events_to_register() if isinstance(plugin, EnqueueExtensions) else full
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is reported together with the rest
            failures.append(f"registering events of plugin {plugin.name}: {error}")
        else:
            wanted = _with_taints(tuple(wanted))
            _register(registrations, plugin.name, wanted)
            gates[plugin.name] = tuple(each.event for each in wanted if each.opens_gate)
            apart += [] if plugin.in_process else [plugin.name]
    if failures:
        raise EventRegistrationError("\n".join(failures))
    return HintMap(registrations, apart, gates)


def _register(
    registrations: dict[ClusterEvent, list[tuple[str, QueueingHintFn]]],
    plugin: str,
    wanted: Iterable[ClusterEventWithHint],
) -> None:
    for registration in wanted:
        pairs = registrations.setdefault(registration.event, [])
        pairs.append((plugin, registration.hint or always_queue))


def _with_taints(wanted: tuple[ClusterEventWithHint, ...]) -> tuple[ClusterEventWithHint, ...]:
    """The registrations, with taint changes added for a plugin that waits for new nodes but not for those.

    A node that was turned down for its taint never reached the plugin, so it may fit once the taint goes.
    """
    of_nodes = [each for each in wanted if each.event.resource == EventResource.NODE]
    adds = [each for each in of_nodes if each.event.action & ActionType.ADD]
    if not adds or any(each.event.action & ActionType.UPDATE_NODE_TAINT for each in of_nodes):
        return wanted
    opens = any(each.opens_gate for each in adds)
    return (*wanted, ClusterEventWithHint(NODE_TAINT, opens_gate=opens))


def wanted_actions(hint_maps: Iterable[HintMap], *, generic_workload: bool = False) -> dict[str, ActionType]:
    """The resources that plugins of any profile wait for, each with the union of its actions.

    A resource that cannot be watched is logged and left out; the wildcard is no resource.
    """
    wanted: dict[str, ActionType] = {}
    for event in (event for hint_map in hint_maps for event in hint_map.registrations):
        if event.resource != EventResource.WILDCARD and _watchable(event.resource, generic_workload):
            wanted[event.resource] = wanted.get(event.resource, ActionType.NONE) | event.action
    return wanted


def _watchable(resource: str, generic_workload: bool) -> bool:
    if resource == EventResource.POD_GROUP:
        return generic_workload
    if resource in _KNOWN_RESOURCES or resource.count(".") > 1:
        return True
    log.error("Incorrect event registration resource=%s", resource)
    return False


_KNOWN_RESOURCES = frozenset(EventResource)
