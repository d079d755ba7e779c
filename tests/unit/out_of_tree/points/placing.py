"""A pod group's cycle in a harness whose profile has the plugin at both points of placements."""

import msgspec
import numpy as np

from berth.evaluation.points.placement_plugins import run_generate, run_placement_scores
from berth.framework.interface import Placement, ProposedPlacement
from berth.framework.runtime import Framework, ProfilePlugins
from berth.objects.pods.pod_decoding import decode_pod
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates
from berth_sdk import testing as documents
from tests.unit.out_of_tree.scripted import PROFILE, cycle

GROUP = GroupKey("default", "gang")


def member(name):
    """A pod of the group, as the scheduler has it."""
    document = documents.make_pod(name)
    document["spec"]["schedulingGroup"] = {"podGroupName": GROUP.name}
    return decode_pod(msgspec.json.encode(document))


def group_cycle(*members):
    """The state of a group's cycle."""
    state, states = cycle(), PodGroupStates()
    for each in members:
        states.add(each)
    state.write(PodGroupStates, states)
    return state


class Trial:
    """A group's cycle in a harness whose profile has the plugin."""

    def __init__(self, harness):
        self.harness = harness
        harness.pod("p")
        plugins = ProfilePlugins(placement_generate=[harness.plugin], placement_score=[(harness.plugin, 2)])
        self.framework = Framework(PROFILE, plugins)
        self.members = [member("p"), member("q")]
        self.state = group_cycle(*self.members)

    async def placements(self, name="gang"):
        """What comes of the plugin's placements, as names of nodes by name."""
        found = await run_generate(
            self.framework, self.state, GroupKey("default", name), self.harness.snapshot
        )
        names = np.array(self.harness.snapshot.names)
        return found.status, {each.name: names[each.rows].tolist() for each in found.placements}

    async def scores(self, *nodes, name="gang"):
        """The total scores of placements in which both pods go to these nodes."""
        proposed = [
            ProposedPlacement(
                Placement(f"on-{i}", np.array([self.harness.snapshot.row_of[node]])),
                [(each, node) for each in self.members],
            )
            for i, node in enumerate(nodes)
        ]
        return (
            await run_placement_scores(
                self.framework, self.state, GroupKey("default", name), self.harness.snapshot, proposed
            )
        ).tolist()
