"""For each alert a cluster in which it fires and one in which it does not, as promtool's input series.

Series are of two Schedulers, `berth-a` and `berth-b`, each with a leader and a standby.
"""

from typing import NamedTuple

MINUTES = 90


class Case(NamedTuple):
    """What is scraped where an alert fires, and in a cluster that is like it and needs no person."""

    fires: dict[str, str]
    quiet: dict[str, str]


def same(value):
    """One value each minute."""
    return f"{value}+0x{MINUTES}"


def grows(by, start=0):
    """A counter or a gauge that grows each minute."""
    return f"{start}+{by}x{MINUTES}"


def series(metric, job="berth-a", instance="leader", **labels):
    """A series as the Prometheus operator labels it."""
    every = {"namespace": "berth-system", "job": job, "instance": f"{job}-{instance}", **labels}
    matchers = ",".join(f'{name}="{value}"' for name, value in every.items())
    return f"{metric}{{{matchers}}}"


def replicas(job="berth-a", lease="", leads=(1, 0)):
    """A leader and a standby, or two of either."""
    found = {}
    for instance, leading in zip(("leader", "standby"), leads, strict=True):
        where = {"job": job, "instance": instance}
        found[series("berth_scheduler_info", lease=lease or f"berth-system/{job}", **where)] = same(1)
        found[series("leader_election_master_status", name=job, **where)] = same(leading)
        found[series("berth_lease_held", name=job, **where)] = same(max(leads))
    return found


def condition(kind, reason, holds):
    """What the operator says of a Scheduler."""
    where = {"job": "berth-operator", "exported_namespace": "berth-system", "name": "a"}
    return {series("berth_operator_scheduler_condition", type=kind, reason=reason, **where): same(holds)}


def durations(within):
    """Pods bound at their first attempt, of a hundred a minute so many within the objective."""
    name, labels = "scheduler_pod_scheduling_sli_duration_seconds", {"attempts": "1"}
    return replicas() | {
        series(f"{name}_bucket", le="5.12", **labels): grows(within),
        series(f"{name}_count", **labels): grows(100),
    }


def queue(metric, instance, value, **labels):
    return replicas() | {series(metric, instance=instance, **labels): value}


BIND = {"extension_point": "Bind", "status": "Error", "profile": "p"}
BIND_COUNT = "scheduler_framework_extension_point_duration_seconds_count"
HELD_BACK = {"plugin": "NodeResourcesFit", "profile": "p"}
PLUGIN = "berth_plugin_condition"
MISSES = series("berth_plugin_hint_misses_total", plugin="p")
ASIDE = "berth_objects_set_aside_now"
UNREACHABLE = "berth_operator_explain_api_unreachable"
KUBE_SCHEDULER = {"job": "kube-scheduler", "instance": "control-plane"}

CASES = {
    # A Scheduler of its own beside it leads; the quiet one shares its lease with a Scheduler that leads.
    "BerthLeaderAbsent": Case(
        replicas(leads=(0, 0)) | replicas("berth-b"),
        replicas("berth-b", lease="berth-system/berth-b")
        | {
            series("berth_scheduler_info", lease="berth-system/berth-b"): same(1),
            series("leader_election_master_status", name="berth-b"): same(0),
            series("berth_lease_held", name="berth-b"): same(1),
        },
    ),
    "BerthLeaseAtRisk": Case(
        {series("berth_lease_margin_ratio", name="berth-a"): same(0.3)},
        {series("berth_lease_margin_ratio", name="berth-a"): same(0.8)},
    ),
    "BerthSchedulingSlow": Case(durations(within=80), durations(within=99)),
    "BerthPodsPendingTooLong": Case(
        queue("scheduler_unschedulable_pods", "leader", same(3), **HELD_BACK),
        queue("scheduler_unschedulable_pods", "standby", same(3), **HELD_BACK)
        | {series("scheduler_unschedulable_pods", **KUBE_SCHEDULER, **HELD_BACK): same(3)},
    ),
    "BerthQueueGrowing": Case(
        queue("scheduler_pending_pods", "leader", grows(10, 200), queue="active"),
        queue("scheduler_pending_pods", "standby", grows(10, 200), queue="active"),
    ),
    "BerthBindingErrors": Case(
        queue(BIND_COUNT, "leader", grows(30), **BIND),
        queue(BIND_COUNT, "leader", grows(1), **BIND)
        | {series(BIND_COUNT, **KUBE_SCHEDULER, **BIND): grows(30)},
    ),
    "BerthObjectsSetAside": Case(
        {series(ASIDE, resource="pods"): same(2)}, {series(ASIDE, resource="pods"): same(0)}
    ),
    "BerthPluginCircuitOpen": Case(
        {series(PLUGIN, type="CircuitClosed", plugin="p"): same(0)},
        {series(PLUGIN, type="CircuitClosed", plugin="p"): same(1)},
    ),
    "BerthPluginNotReady": Case(
        {series(PLUGIN, type="Ready", plugin="p"): same(0)},
        {series(PLUGIN, type="Ready", plugin="p"): same(1)},
    ),
    "BerthPluginHintMisses": Case({MISSES: grows(1)}, {MISSES: same(4)}),
    "BerthOperatorAbsent": Case(replicas(), {series("berth_operator_info", job="berth-operator"): same(1)}),
    "BerthSchedulerUnavailable": Case(
        condition("Available", "PodUnschedulable", 0), condition("Available", "ScaledToZero", 0)
    ),
    "BerthSchedulerDegraded": Case(
        condition("Degraded", "ProfileServedTwice", 1), condition("Degraded", "AsExpected", 0)
    ),
    "BerthSchedulerPluginsNotReady": Case(
        condition("PluginsReady", "PluginNotReady", 0), condition("PluginsReady", "AllReady", 1)
    ),
    "BerthRolloutStuck": Case(
        condition("Progressing", "RollingOut", 1), condition("Progressing", "RolledOut", 0)
    ),
    "BerthDeschedulingFailed": Case(
        condition("Descheduling", "JobFailed", 0), condition("Descheduling", "Suspended", 0)
    ),
    "BerthLeaseRefused": Case(
        condition("Leading", "LeaseNotAcquired", 0), condition("Leading", "Standby", 0)
    ),
    "BerthPluginArgumentsRefused": Case(
        condition("ArgumentsAccepted", "Refused", 0), condition("ArgumentsAccepted", "Accepted", 1)
    ),
    "BerthKubernetesUntested": Case(
        condition("KubernetesTested", "NewerThanTried", 0), condition("KubernetesTested", "Tested", 1)
    ),
    "BerthExplanationsNotServed": Case(
        {series(UNREACHABLE, job="berth-operator"): same(1)},
        {series(UNREACHABLE, job="berth-operator"): same(0)},
    ),
}


def document(rules, groups):
    """The cases as promtool's test file: each alert fires once at the end of one, and never in the other."""
    tests = []
    for rule in rules:
        name = rule["alert"]
        for title, given in zip(("fires", "quiet"), CASES[name], strict=True):
            inputs = [{"series": one, "values": values} for one, values in given.items()]
            tests.append(
                {
                    "name": f"{name} {title}",
                    "interval": "1m",
                    "input_series": inputs,
                    "promql_expr_test": [
                        {
                            "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)',
                            "eval_time": f"{MINUTES}m",
                            "exp_samples": [{"labels": "{}", "value": int(title == "fires")}],
                        }
                    ],
                }
            )
    return {"rule_files": [groups], "evaluation_interval": "5m", "tests": tests}
