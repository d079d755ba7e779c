"""A scheduler that hears everything: what it keeps for a pod in flight shows what reached its queue."""

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import SKIP, Doorkeeper

EVERYTHING = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)


class Listening:
    """A paused cluster with a pod in flight; `heard()` gives the labels of what came since the last time."""

    def __init__(self, *plugins, hints=None, **options):
        self.door = Doorkeeper(hints={EVERYTHING: SKIP} if hints is None else hints)
        self.cluster = Cluster(self.door, *plugins, **options)
        self.cluster._pause = True
        self.cluster.add_pod("listener")
        self.cluster.queue.pop()
        self._known = 0

    def entries(self):
        """What is kept for the pod since it was last asked: events with their objects."""
        events = self.cluster.queue._in_flight.events_for("default-listener")
        fresh, self._known = events[self._known :], len(events)
        return fresh

    def heard(self):
        return [entry.event.label for entry in self.entries()]
