"""A plugin that takes part in everything and keeps the protocol: what the broken ones are broken against."""

# ruff: noqa: ARG002 - the SDK gives the methods their parameters

import numpy as np

from berth_sdk import (
    SKIP,
    Action,
    ArgumentError,
    Code,
    EventInterest,
    GroupPreemption,
    MetadataPatch,
    Plugin,
    Reason,
    Status,
    Wait,
    current_call,
)
from berth_sdk.objects import decode_node
from berth_sdk.plugin import WatchedResource

OTHER_TEAM = Reason("node(s) belonged to another team")
FULL = Reason("node(s) had no slot left")
MILLI_CPU_OF_A_SLOT = 4000
SLOTS_OF_A_GROUP = 2


class Slots(Plugin):
    """Each node has a slot for every four CPUs; nodes of a team are for its pods."""

    name = "slots"
    version = "1.2.3"
    reasons = (OTHER_TEAM, FULL)
    events = (
        EventInterest("Node", (Action.ADD, Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_ALLOCATABLE)),
        EventInterest("Pod", (Action.DELETE,)),
    )
    pod_fields = ("/metadata/labels/team",)
    node_local = True
    uses_clock = True
    wants_nominations = True
    wanted_deadline_seconds = 0.5
    watches = (WatchedResource("example.com", "v1", "teams"),)
    arguments_schema = {
        "type": "object",
        "properties": {"bonus": {"type": "integer"}},
        "additionalProperties": False,
    }

    def __init__(self):
        self.bonus = {}
        self.held = {}

    def configure(self, arguments, profile):
        if unknown := arguments.keys() - {"bonus"}:
            raise ArgumentError(*(f"{key}: unknown argument" for key in unknown))
        if not isinstance(bonus := arguments.get("bonus", 0), int):
            raise ArgumentError("bonus: expected a whole number")
        self.bonus[profile] = bonus

    def free(self, node, nodes=None):
        placed = {} if nodes is None else nodes.pods_on(node.name)
        taken = len(placed) + sum(
            name == node.name and uid not in placed for uid, (_, name) in self.held.items()
        )
        return int(node.allocatable("cpu")) // MILLI_CPU_OF_A_SLOT - taken

    def filter_nodes(self, pod, nodes):
        codes = np.zeros(len(nodes), np.uint8)
        for row, node in nodes.asked():
            if self.other_team(pod, node):
                codes[row] = 1
            elif self.free(node, nodes) <= 0:
                codes[row] = 2
        return codes

    def other_team(self, pod, node):
        return node.labels.get("team") not in (None, pod.labels.get("team"))

    def score_nodes(self, pod, nodes):
        points = np.zeros(len(nodes), np.int64)
        for row, node in nodes.asked():
            points[row] = min(100, max(0, 10 * self.free(node, nodes) + self.bonus[current_call().profile]))
        return points

    def pre_enqueue(self, pod):
        return None

    def post_filter(self, pod, nodes, verdicts):
        return "no pod can be evicted"

    def reserve(self, pod, node):
        key = current_call().key
        self.held[key.uid] = key.attempt, node.name
        return MetadataPatch(annotations={"slot": node.name})

    def unreserve(self, key, node_name):
        if self.held.get(key.uid, (0, ""))[0] == key.attempt:
            del self.held[key.uid]

    def state_reset(self, *, epoch_changed):
        if epoch_changed:
            self.held.clear()

    def permit(self, pod, node):
        return Wait(1.5)

    def pre_bind(self, pod, node):
        return MetadataPatch(annotations={"slot": node.name})

    def bind(self, pod, node, annotations):
        return SKIP

    def post_bind(self, key, node_name):
        return None

    def cycle_done(self, key, outcome, node_name):
        return None

    def sort_key(self, pod):
        return (-(pod.spec.priority or 0), len(pod.name))

    def generate_placements(self, group, pod, nodes):
        teams = np.array([node.labels.get("team", "") for node in nodes])
        return {team or "free": teams == team for team in sorted(set(teams.tolist()))}

    def score_placements(self, group, pod, nodes, proposed):
        return np.array([10 * (node % 10) for each in proposed for _, node in each.assignments])

    def placement_feasible(self, group, pod, progress):
        if progress.scheduled >= SLOTS_OF_A_GROUP:
            return None
        if progress.scheduled + progress.remaining < SLOTS_OF_A_GROUP:
            return f"{SLOTS_OF_A_GROUP} slots are needed"
        return Status(Code.WAIT, ("more slots are needed",))

    def pod_group_post_filter(self, group, pod, nodes, verdicts):
        uids = [uid for node in nodes for uid in nodes.pods_on(node.name)]
        return [GroupPreemption((uid,)) for uid in uids] if uids else "no pod can be evicted"

    def queueing_hint(self, pod, event):
        node = None if event.new is None else decode_node(event.new)
        return node is None or not self.other_team(pod, node)
