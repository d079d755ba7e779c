"""Which ClusterRoles a scheduler needs: the one that all need, and those of plugins that its profiles use.

The roles themselves are in kustomize/base; the operator may bind them, and has none of their rights itself.
"""

from typing import Final

from berth.config import Loaded
from berth.scheduler.needed_kinds import needed_groups

CORE: Final = "berth-scheduler"
LEADER_ELECTION: Final = f"{CORE}-leader-election"
_POD_GROUPS_GATE: Final = "GenericWorkload"
_TAINT_RULES_GATE: Final = "DRADeviceTaintRules"


def cluster_roles(loaded: Loaded, *, has_plugins: bool) -> list[str]:
    """Give the names of the roles that hold everywhere."""
    groups = needed_groups(loaded.profiles, out_of_tree=has_plugins)
    if loaded.gates.enabled(_POD_GROUPS_GATE):
        groups |= {"pod-groups"}
    if loaded.gates.enabled(_TAINT_RULES_GATE) and "dynamic-resources" in groups:
        groups |= {"device-taint-rules"}
    return [CORE, *(f"{CORE}-{group}" for group in sorted(groups))]
