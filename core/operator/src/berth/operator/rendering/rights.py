"""What a scheduler may do: the ClusterRole that all need, those of the plugins of its profiles, its lease.

The ClusterRoles are in kustomize/base; the operator may bind them, and has none of their rights itself.
"""

from collections.abc import Sequence
from typing import Final

from berth.config import LoadedConfig
from berth.operator.kinds import Json
from berth.operator.rendering.settings import SchedulerDefaults
from berth.scheduler.watching.needed_kinds import needed_groups

_KUBE_SCHEDULERS_LEASE: Final = "lease-of-kube-scheduler"
_POD_GROUPS_GATE: Final = "GenericWorkload"
_TREES_GATE: Final = "CompositePodGroup"
_TAINT_RULES_GATE: Final = "DRADeviceTaintRules"


def cluster_roles(loaded: LoadedConfig, plugins: Sequence[Json], settings: SchedulerDefaults) -> list[str]:
    """Give the names of the roles that hold everywhere, those that plugins ask for last."""
    groups = needed_groups(loaded.profiles, out_of_tree=bool(plugins))
    if loaded.gates.enabled(_POD_GROUPS_GATE):
        groups |= {"pod-groups"}
    if loaded.gates.enabled(_TREES_GATE):
        groups |= {"composite-pod-groups"}
    if loaded.gates.enabled(_TAINT_RULES_GATE) and "dynamic-resources" in groups:
        groups |= {"device-taint-rules"}
    if _shares_lease(loaded):
        groups |= {_KUBE_SCHEDULERS_LEASE}
    asked = {role for plugin in plugins for role in plugin["spec"].get("clusterRoles") or ()}
    return [settings.role, *map(settings.role_of, sorted(groups)), *sorted(asked)]


def lease_rules(name: str) -> list[Json]:
    """Give the rules by which a scheduler renews one lease; RBAC cannot name what is to be created.

    Where other leaders of the namespace answer is read in their leases, for explanations.
    """
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    return [
        {**leases, "verbs": ["create", "list"]},
        {**leases, "resourceNames": [name], "verbs": ["get", "update"]},
    ]


def _shares_lease(loaded: LoadedConfig) -> bool:
    election = loaded.configuration.leader_election
    lease = (election.resource_namespace, election.resource_name)
    return election.leader_elect and lease == ("kube-system", "kube-scheduler")
