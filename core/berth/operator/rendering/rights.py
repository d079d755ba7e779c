"""Which ClusterRoles a scheduler needs: the one that all need, and those of plugins that its profiles use.

The roles themselves are in kustomize/base; the operator may bind them, and has none of their rights itself.
"""

from collections.abc import Sequence
from typing import Final

from berth.config import Loaded
from berth.operator.kinds import Json
from berth.operator.rendering.settings import Settings
from berth.scheduler.watching.needed_kinds import needed_groups

LEADER_ELECTION: Final = "leader-election"
_KUBE_SCHEDULERS_LEASE: Final = "lease-of-kube-scheduler"
_POD_GROUPS_GATE: Final = "GenericWorkload"
_TAINT_RULES_GATE: Final = "DRADeviceTaintRules"


def cluster_roles(loaded: Loaded, plugins: Sequence[Json], settings: Settings) -> list[str]:
    """Give the names of the roles that hold everywhere, those that plugins ask for last."""
    groups = needed_groups(loaded.profiles, out_of_tree=bool(plugins))
    if loaded.gates.enabled(_POD_GROUPS_GATE):
        groups |= {"pod-groups"}
    if loaded.gates.enabled(_TAINT_RULES_GATE) and "dynamic-resources" in groups:
        groups |= {"device-taint-rules"}
    if _shares_lease(loaded):
        groups |= {_KUBE_SCHEDULERS_LEASE}
    asked = {role for plugin in plugins for role in plugin["spec"].get("clusterRoles") or ()}
    return [settings.role, *map(settings.role_of, sorted(groups)), *sorted(asked)]


def _shares_lease(loaded: Loaded) -> bool:
    election = loaded.configuration.leader_election
    lease = (election.resource_namespace, election.resource_name)
    return election.leader_elect and lease == ("kube-system", "kube-scheduler")
