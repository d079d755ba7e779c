"""What a Scheduler's status says: conditions, each with a reason that names the cause.

Available      at least one pod schedules, or could at once
Progressing    a change is on its way to the pods
Degraded       it is not as the spec asks: the configuration is wrong, or something keeps failing
PluginsReady   every plugin's sidecar runs in every pod, and the schedulers there have it ready
Descheduling   plans are made by the clock, and the last one ended well (descheduling_condition.py)
Leading        one of its pods holds the lease (leading_condition.py)
ArgumentsAccepted   no plugin refuses its arguments (arguments_condition.py)
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from berth.operator.kinds import Json
from berth.operator.mounts import FAILED_MOUNT
from berth.operator.rendering.names import sidecar_name

AVAILABLE, PROGRESSING, DEGRADED, PLUGINS_READY = "Available", "Progressing", "Degraded", "PluginsReady"
DESCHEDULING, ARGUMENTS_ACCEPTED, LEADING = "Descheduling", "ArgumentsAccepted", "Leading"
KUBERNETES_TESTED = "KubernetesTested"
PLUGIN = "plugin.berth.dev/"
"""How the types of conditions begin by which a scheduler reports its plugins on its own pod."""
# What a container waits for in the ordinary course of a start.
_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})


class StatusCondition(NamedTuple):
    """One condition, without its times."""

    type: str
    holds: bool
    reason: str
    message: str


class Problem(NamedTuple):
    """Why something is not as it should be."""

    reason: str
    message: str


def conditions(
    deployment: Json | None,
    pods: Sequence[Json],
    states: Mapping[str, str],
    problem: Problem | None,
    mounts: Mapping[str, str] = MappingProxyType({}),
) -> list[StatusCondition]:
    """Give the conditions.

    `problem` is what keeps the spec from being rolled out, `states` what is wrong with each plugin, `mounts`
    what is wrong with the volumes of a pod, by its name.
    """
    failure = next((found for pod in pods if (found := pod_problem(pod)) is not None), None)
    failure = failure or next(
        (Problem(FAILED_MOUNT, f"pod {pod}: {text}") for pod, text in mounts.items()), None
    )
    failure = failure or deployment_problem(deployment)
    progressing = _progressing(deployment)
    return [
        _available(deployment, pods, failure),
        progressing,
        _degraded(progressing, problem, failure),
        _plugins_ready(states),
    ]


def _available(deployment: Json | None, pods: Sequence[Json], failure: Problem | None) -> StatusCondition:
    if deployment is None:
        return StatusCondition(AVAILABLE, False, "NotDeployed", "nothing has been rolled out yet")
    status = deployment.get("status") or {}
    ready, wanted = status.get("availableReplicas", 0), deployment["spec"].get("replicas", 1)
    if ready:
        return StatusCondition(
            AVAILABLE, True, "ReplicasAvailable", f"{ready} of {wanted} replicas are available"
        )
    if not wanted:
        return StatusCondition(
            AVAILABLE, False, "ScaledToZero", "spec.replicas is 0; raise it to schedule pods"
        )
    if failure is not None:
        return StatusCondition(AVAILABLE, False, *failure)
    text = f"none of {wanted} replicas is available yet{_unplaced(pods)}"
    return StatusCondition(AVAILABLE, False, "Starting", text)


def _unplaced(pods: Sequence[Json]) -> str:
    """Name the scheduler that has not looked at a pod yet: it may not be there."""
    for pod in pods:
        spec, kinds = pod.get("spec") or {}, [one["type"] for one in pod_conditions(pod)]
        if "nodeName" not in spec and "PodScheduled" not in kinds:
            name = spec.get("schedulerName", "default-scheduler")
            return f"; pod {pod['metadata']['name']} waits for the scheduler {name} (spec.pod.schedulerName)"
    return ""


def _progressing(deployment: Json | None) -> StatusCondition:
    if deployment is None:
        return StatusCondition(PROGRESSING, False, "NotDeployed", "nothing has been rolled out yet")
    if is_rolled_out(deployment):
        return StatusCondition(PROGRESSING, False, "RolledOut", "all replicas are up to date")
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    updated = status.get("updatedReplicas", 0)
    if deployment["spec"].get("paused"):
        return StatusCondition(PROGRESSING, False, "Paused", "spec.rollout.paused holds changes back")
    late = _of_deployment(deployment, "Progressing", "False")
    if late is not None:
        return StatusCondition(PROGRESSING, False, *_problem(late))
    return StatusCondition(PROGRESSING, True, "RollingOut", f"{updated} of {wanted} replicas are up to date")


def deployment_problem(deployment: Json | None) -> Problem | None:
    """Say what keeps pods from being made (quota, admission, a name that does not exist), or makes them late.

    The Deployment repeats what its ReplicaSets ran into, so that these need not be watched.
    """
    if deployment is None:
        return None
    failed = _of_deployment(deployment, "ReplicaFailure", "True")
    if failed is not None:
        return Problem(
            "ReplicaFailure", f"{failed.get('reason', 'FailedCreate')}: {failed.get('message', '')}"
        )
    late = _of_deployment(deployment, "Progressing", "False")
    return None if late is None else _problem(late)


def _of_deployment(deployment: Json, kind: str, status: str) -> Json | None:
    """Give a condition of the Deployment, if it is about its present spec."""
    seen = (deployment.get("status") or {}).get("observedGeneration", 0)
    if seen < deployment["metadata"].get("generation", 0):
        return None
    found = (one for one in pod_conditions(deployment) if (one["type"], one["status"]) == (kind, status))
    return next(found, None)


def _problem(condition: Json) -> Problem:
    return Problem(condition.get("reason") or condition["type"], condition.get("message", ""))


def pod_conditions(document: Json) -> list[Json]:
    """Give the conditions of a pod or a Deployment."""
    return (document.get("status") or {}).get("conditions") or []


def is_rolled_out(deployment: Json) -> bool:
    """Say whether all pods are of the present template, and no others are left."""
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    seen = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")]
    return seen and counts == [wanted] * 3


def _degraded(
    progressing: StatusCondition, problem: Problem | None, failure: Problem | None
) -> StatusCondition:
    if problem is not None:
        return StatusCondition(DEGRADED, True, *problem)
    if failure is not None:
        where = "the rollout is stuck: " if progressing.holds else ""
        return StatusCondition(DEGRADED, True, failure.reason, f"{where}{failure.message}")
    return StatusCondition(DEGRADED, False, "AsExpected", "nothing keeps it from being as the spec asks")


def pod_problem(pod: Json) -> Problem | None:
    """Say what keeps a pod from running, if something does."""
    name = pod["metadata"]["name"]
    for one in pod_conditions(pod):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return Problem("PodUnschedulable", f"pod {name}: {one.get('message') or one.get('reason', '')}")
    for container in _containers(pod):
        problem = _container_problem(container)
        if problem is not None:
            return Problem(problem.reason, f"pod {name}, container {container['name']}: {problem.message}")
    return None


def _containers(pod: Json) -> list[Json]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _container_problem(container: Json) -> Problem | None:
    state = container.get("state") or {}
    ended = state.get("terminated") or {}
    if ended.get("exitCode"):
        return Problem(ended.get("reason") or "Error", _ending(ended))
    waiting = state.get("waiting") or {}
    reason = waiting.get("reason", "")
    if reason in _STARTING:
        return None
    last = (container.get("lastState") or {}).get("terminated") or {}
    message = waiting.get("message") or reason
    return Problem(reason, f"{message}; {_ending(last)}" if last else message)


def _ending(terminated: Json) -> str:
    why = terminated.get("reason", "")
    known = f" ({why})" if why not in ("", "Error") else ""
    return f"it ended with exit status {terminated.get('exitCode')}{known}, see its log"


def plugin_states(
    plugins: Iterable[Json], pods: Sequence[Json], misnamed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Give what is wrong with each plugin, nothing where it is ready for every scheduler that reports on it.

    `misnamed` has what is wrong with the names of profiles, see profile_names.
    """
    found = {}
    for plugin in plugins:
        name = plugin["metadata"]["name"]
        wrong = _sidecar_state(name, pods) if "image" in plugin["spec"] else ""
        found[name] = wrong or misnamed.get(name) or _attached_state(name, pods)
    return found


def _attached_state(name: str, pods: Sequence[Json]) -> str:
    """What schedulers say of the plugin; replicas that have not begun to watch say nothing yet."""
    reported = [
        (pod["metadata"]["name"], one)
        for pod in pods
        for one in pod_conditions(pod)
        if one["type"] == f"{PLUGIN}{name}"
    ]
    for pod_name, one in reported:
        if one["status"] != "True":
            return f"{one.get('reason', 'NotReady')}: {one.get('message') or 'not ready'} (pod {pod_name})"
    return "" if reported else "no scheduler has reported it yet"


def _sidecar_state(name: str, pods: Sequence[Json]) -> str:
    if not pods:
        return "no pod runs it yet"
    wanted = sidecar_name(name)
    for pod in pods:
        container = next((one for one in _containers(pod) if one["name"] == wanted), None)
        if container is None:
            return f"pod {pod['metadata']['name']} does not run it yet"
        problem = _container_problem(container)
        if problem is not None:
            return f"{problem.reason}: {problem.message}"
        if not container.get("ready"):
            return f"it is not ready in pod {pod['metadata']['name']}"
    return ""


def _plugins_ready(states: Mapping[str, str]) -> StatusCondition:
    if not states:
        return StatusCondition(PLUGINS_READY, True, "NoPlugins", "spec.plugins names none")
    wrong = [f"{name}: {state}" for name, state in states.items() if state]
    if wrong:
        return StatusCondition(PLUGINS_READY, False, "PluginNotReady", "; ".join(wrong))
    return StatusCondition(PLUGINS_READY, True, "AllReady", f"{len(states)} plugins are ready")


def written(
    found: Iterable[StatusCondition], before: Sequence[Json], generation: int, now: str
) -> list[Json]:
    """Give conditions as the API has them; the time of the last transition stays where nothing changed."""
    old = {one["type"]: one for one in before}
    return [_written(one, old.get(one.type), generation, now) for one in found]


def _written(condition: StatusCondition, old: Json | None, generation: int, now: str) -> Json:
    status = "True" if condition.holds else "False"
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
    return {
        "type": condition.type,
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": since,
        "reason": condition.reason,
        "message": condition.message[:8192],
    }
