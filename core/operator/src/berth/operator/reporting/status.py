"""The status that is written for Schedulers and SchedulerPlugins."""

from collections.abc import Mapping, Sequence

from berth.operator.kinds import Json, SchedulerKey, key_of
from berth.operator.rendering.names import selector
from berth.operator.reporting.conditions import StatusCondition, written


def scheduler_status(
    scheduler: Json,
    deployment: Json | None,
    states: Mapping[str, str],
    found: Sequence[StatusCondition],
    *,
    fingerprint: str,
    now: str,
) -> Json:
    """Give a Scheduler's status; without a fingerprint, of nothing new, the last one stays."""
    before = scheduler.get("status") or {}
    counts = (deployment or {}).get("status") or {}
    generation = scheduler["metadata"].get("generation", 1)
    status: Json = {
        "observedGeneration": generation,
        "replicas": counts.get("replicas", 0),
        "readyReplicas": counts.get("readyReplicas", 0),
        "updatedReplicas": counts.get("updatedReplicas", 0),
        "selector": ",".join(f"{name}={value}" for name, value in selector(key_of(scheduler)).items()),
        "profiles": [profile["schedulerName"] for profile in scheduler["spec"]["profiles"]],
        "plugins": [_plugin(name, state) for name, state in states.items()],
        "conditions": written(found, before.get("conditions") or (), generation, now),
    }
    kept = fingerprint or before.get("configurationHash")
    return {**status, "configurationHash": kept} if kept else status


def _plugin(name: str, state: str) -> Json:
    return {"name": name, "ready": not state, **({"message": state[:1024]} if state else {})}


def plugin_status(
    plugin: Json,
    states: Mapping[SchedulerKey, str],
    found: Sequence[StatusCondition],
    accepted: Json | None,
    now: str,
) -> Json:
    """Give a SchedulerPlugin's status.

    `states` says what is wrong with it in each Scheduler that uses it, `accepted` what it took last.
    """
    generation = plugin["metadata"].get("generation", 1)
    before = (plugin.get("status") or {}).get("conditions") or ()
    names = [key.name for key in states]
    status: Json = {
        "observedGeneration": generation,
        "schedulers": names,
        "conditions": written(found, before, generation, now),
    }
    return status if accepted is None else {**status, "accepted": accepted}


def ready(states: Mapping[SchedulerKey, str], unknown: Sequence[str]) -> StatusCondition:
    """Give a SchedulerPlugin's condition Ready, by what is wrong with it and which profiles none has."""
    if not states:
        text = "no Scheduler of this namespace names it in spec.plugins"
        return StatusCondition("Ready", False, "NotUsed", text)
    if unknown:
        names = ", ".join(unknown)
        text = f"spec.profiles names {names}, which no Scheduler that runs it has; correct or remove it"
        return StatusCondition("Ready", False, "UnknownProfile", text)
    wrong = [f"{key.name}: {state}" for key, state in states.items() if state]
    if wrong:
        return StatusCondition("Ready", False, "NotReady", "; ".join(wrong))
    return StatusCondition(
        "Ready", True, "Running", f"it runs beside {', '.join(key.name for key in states)}"
    )
