"""Feature gates of a workload as flags of the programs.

Upstream sets them for everything in one process, and emulates 1.33 for a workload without queueing hints,
whose gate cannot be turned off later. OpportunisticBatching is off unless the workload sets it or turns
hints off.
Source: test/integration/scheduler_perf/scheduler_perf.go setupTestCase (Kubernetes v1.36.2).
"""

from berth.config.releases.gate_history import NEEDS

HINTS, BATCHING = "SchedulerQueueingHints", "OpportunisticBatching"
EMULATED = "1.33"
# API versions behind the gates, which a real kube-apiserver serves only where it is asked to.
SERVED = {
    "DynamicResourceAllocation": ("resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"),
    "GenericWorkload": ("scheduling.k8s.io/v1alpha2",),
}


def scheduler_flags(gates):
    """The flags of either scheduler."""
    without_hints = gates.get(HINTS) is False
    wanted = with_dependents(gates)
    if not without_hints:
        wanted.setdefault(BATCHING, False)
    emulated = [f"--emulated-version={EMULATED}"] if without_hints else []
    return [*emulated, f"--feature-gates={_written(wanted)}"] if wanted else emulated


def api_server_flags(gates):
    """The flags of a real kube-apiserver, which knows the same gates; hints are no matter of it."""
    wanted = {name: on for name, on in with_dependents(gates).items() if not name.startswith("Scheduler")}
    served = [f"{version}=true" for gate, on in wanted.items() if on for version in SERVED.get(gate, ())]
    flags = [f"--feature-gates={_written(wanted)}"] if wanted else []
    return [*flags, f"--runtime-config={','.join(served)}"] if served else flags


def with_dependents(gates):
    """The gates, and off all those that need one which is off: a program would not start with them on.

    Upstream's tests set gates one by one, without that check.
    """
    found = dict(gates)
    while more := {
        gate: False
        for gate, needs in NEEDS.items()
        if gate not in found and any(found.get(need) is False for need in needs)
    }:
        found.update(more)
    return found


def _written(gates):
    return ",".join(f"{name}={'true' if on else 'false'}" for name, on in gates.items())
