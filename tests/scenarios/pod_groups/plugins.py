# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""Plugins that tell the pods of a group apart."""

import numpy as np

from berth.framework.interface import FilterPlugin, NominatingInfo, NominatingMode
from berth.framework.status import SUCCESS, Code, Status, failed, unschedulable
from berth.snapshot.pod_group_states import PodGroupStates
from tests.fakes import Named, Permits, PostFilters, Reserves

TO_N0 = NominatingInfo(NominatingMode.OVERRIDE, "n0")
WAIT = Status(Code.WAIT, ("hold on",))


class TurnsDown(Named, FilterPlugin):
    """Turns every node down for the pods named, each with its status; an exception breaks."""

    def __init__(self, **statuses):
        super().__init__("TurnsDown")
        self.statuses = statuses
        self.tried = []

    def filter(self, state, pod, nodes):
        self.tried.append(pod.name)
        status = self.statuses.get(pod.name, SUCCESS)
        if isinstance(status, Exception):
            raise status
        state.write(TurnsDown, status)
        return np.full(len(nodes), 0 if status.ok else 1, dtype=np.uint8)

    def filter_status(self, state, code):
        return state.read(TurnsDown).from_plugin(self.name)


def only(name, status=None):
    """A filter that turns down that pod alone."""
    return TurnsDown(**{name: unschedulable("shut") if status is None else status})


class NoRoom(Reserves):
    """Reserve says no to the pods named."""

    def __init__(self, *names, status=None):
        super().__init__("NoRoom")
        self.names, self.answer = names, unschedulable("no room") if status is None else status

    def reserve(self, state, pod, node_name):
        self.calls.append(f"reserve {pod.name}")
        return self.answer if pod.name in self.names else SUCCESS

    def unreserve(self, state, pod, node_name):
        self.calls.append(f"unreserve {pod.name}")


class NotAllowed(Permits):
    """Permit gives its status to the pods named."""

    def __init__(self, *names, status):
        super().__init__("NotAllowed")
        self.names, self.answer = names, status

    def permit(self, state, pod, node_name):
        self.status, self.seconds = (self.answer if pod.name in self.names else SUCCESS), 60.0
        return super().permit(state, pod, node_name)


class RefusesInEarnest(NoRoom):
    """Reserve lets the trial pass and breaks for these pods once they are really placed."""

    def reserve(self, state, pod, node_name):
        self.answer = SUCCESS if state.get(PodGroupStates) is not None else failed("broken")
        return super().reserve(state, pod, node_name)


def room_for(*names):
    """A filter that turns these pods down, and a PostFilter that makes room for them."""
    return only(names[0]), PostFilters("Room", SUCCESS, TO_N0)
