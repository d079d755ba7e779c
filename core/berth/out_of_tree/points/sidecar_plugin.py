"""A plugin in another process as a plugin of a profile: every extension point, each in a module of its own.

    waits:    gating.py (PreEnqueue, events), ordering.py (QueueSort)
    no node:  making_room.py (PostFilter)
    nodes:    finding.py (Filter, Score), overlays.py
    a group:  placing.py (PlacementGenerate, PlacementScore)
    a node:   holding.py (Reserve, Permit, PreBind, Bind, PostBind)

Source: docs/protocol.md.
"""

from berth.out_of_tree.points.finding import FindsNodes
from berth.out_of_tree.points.gating import KeepsTheGate
from berth.out_of_tree.points.holding import HoldsAndBinds
from berth.out_of_tree.points.making_room import MakesRoom
from berth.out_of_tree.points.ordering import OrdersTheQueue
from berth.out_of_tree.points.placing import PlacesGroups


class SidecarPlugin(KeepsTheGate, FindsNodes, MakesRoom, PlacesGroups, HoldsAndBinds, OrdersTheQueue):
    """One plugin in one profile; what it does not announce it is not asked."""
