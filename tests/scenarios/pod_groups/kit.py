"""Groups and their pods for scenarios, and what can be seen of them."""

from berth.config.releases.release import DEFAULT
from berth.config.releases.rules import RULES
from berth.objects.decode import from_document
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.snapshot.pod_group_states import GroupKey
from tests.scenarios.kit.cluster import Cluster

GANG = {"GenericWorkload": True, "GangScheduling": True}
TOPOLOGY = {**GANG, "TopologyAwareWorkloadScheduling": True}
PREEMPTION = {**GANG, "WorkloadAwarePreemption": True}

UNSCHEDULABLE = "pod group is unschedulable"
ASKED_TO_WAIT = (
    "waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def group(name="g", min_count=None, *, uid="", generation=1, topology=None, **spec):
    """A gang of at least that many pods; a basic group where no number is given."""
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    if (policy_of_preemption := spec.pop("preemption_policy", None)) is not None:
        spec["preemptionPolicy"] = policy_of_preemption
    if topology is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "generation": generation}
    return from_document({"metadata": metadata, "spec": {"schedulingPolicy": policy, **spec}}, PodGroup)


class Groups(Cluster):
    """A cluster whose scheduler knows pod groups."""

    def __init__(self, *plugins, gates=None, **options):
        super().__init__(*plugins, gates=GANG if gates is None else gates, **options)
        self.condition_type = RULES[options.get("release", DEFAULT)].pod_group_condition

    def add_group(self, name="g", min_count=None, **fields):
        """Create a group."""
        return self.add(group(name, min_count, **fields))

    def add_member(self, name, group="g", **fields):
        """Create a pod of a group."""
        return self.add_pod(name, scheduling_group=SchedulingGroup(group), **fields)

    def add_members(self, *names, **fields):
        """Create several alike."""
        for name in names:
            self.add_member(name, **fields)

    def add_gang(self, min_count, *names, group="g", **fields):
        """Create a gang and its pods."""
        self.add_group(group, min_count)
        self.add_members(*names, group=group, **fields)

    def group_condition(self, name="g"):
        """(status, reason, message) of the group's condition, None where it has none."""
        conditions = self.api.get(PodGroup, f"default/{name}").status.conditions
        found = next((c for c in conditions if c.type == self.condition_type), None)
        return found and (found.status, found.reason, found.message)

    def state(self, name="g"):
        """The group's pods by how far they are: (unscheduled, assumed, assigned), each sorted."""
        state = self.cache.pod_groups.known(GroupKey("default", name))
        names = {uid: pod.name for uid, pod in state.pods.items()}
        assumed, assigned = (sorted(names[uid] for uid in uids) for uids in (state.assumed, state.assigned))
        return [pod.name for pod in state.unscheduled], assumed, assigned

    def message(self, name):
        """What the pod's PodScheduled says."""
        return self.condition(name).message

    def attempts(self, result):
        """How many attempts at groups ended like that."""
        return self.metric("podgroup_schedule_attempts_total", result=result, profile="default-scheduler")


def gang_of(min_count, *plugins, names="abc", **fields):
    """A gang of pods with these names, on one node that is large enough for all."""
    cluster = Groups("GangScheduling", *plugins)
    cluster.add_node("n0")
    cluster.add_gang(min_count, *names, **fields)
    return cluster
