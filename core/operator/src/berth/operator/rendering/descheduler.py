"""The descheduler of a Scheduler: a CronJob under an account of its own, whose rights are one role's.

    spec.descheduler --> policy (checked) --> ConfigMap --+
                                                          +--> CronJob --> `berth deschedule`
    scheduler.yaml ---------------------------------------+

`standing` is the one source of its manifests: kustomize/components/descheduler is written from it, too.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from berth.config.descheduling.policy import API_VERSION, KIND
from berth.config.descheduling.policy_file import read_policy
from berth.config.dump import yaml_text
from berth.config.duration import parse_duration
from berth.config.errors import PolicyError
from berth.operator.errors import ConfigurationProblemError
from berth.operator.kinds import INSTANCE, Json, SchedulerKey
from berth.operator.rendering.configuration import Configuration
from berth.operator.rendering.names import (
    CLUSTER_ROLE,
    RBAC,
    cluster_wide,
    descheduler_name,
    owned,
)
from berth.operator.rendering.pod import POD_SECURITY, RESTRICTED, placing
from berth.operator.rendering.settings import SchedulerDefaults

ROLE_GROUP: Final = "descheduling"
FIELD: Final = "spec.descheduler"
LABELS: Final = {"app.kubernetes.io/name": "berth-descheduler", "app.kubernetes.io/part-of": "berth"}
"""Of its pods; they are none of the scheduler's."""
_FOLDER: Final = "/etc/berth"
_REQUESTS: Final[Json] = {"requests": {"cpu": "100m", "memory": "256Mi"}}


def descheduler_objects(
    scheduler: Json, key: SchedulerKey, made: Configuration, settings: SchedulerDefaults
) -> Iterator[Json]:
    """Give what a Scheduler's descheduler is made of, nothing without the field.

    Raises: ConfigurationProblemError.
    """
    chosen = scheduler["spec"].get("descheduler")
    if chosen is None:
        return
    image = chosen.get("image") or settings.descheduler_image
    if not image:
        raise ConfigurationProblemError(f"{FIELD}.image: the operator has no image for it; name one")
    role, name = settings.role_of(ROLE_GROUP), descheduler_name(key)
    metadata = owned(scheduler, key, name)
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"policy.yaml": _policy(chosen), "scheduler.yaml": made.scheduler_yaml},
    }
    yield from standing(
        metadata,
        cluster_wide(key, f"{role}:{key.namespace}:{key.name}"),
        {**chosen, "image": image, "imagePullPolicy": scheduler["spec"].get("imagePullPolicy")},
        role=role,
        labels={**LABELS, INSTANCE: key.name},
        placed=placing(scheduler["spec"].get("pod") or {}),
        gates=made.feature_gates,
    )


def _policy(chosen: Json) -> str:
    text = yaml_text({"apiVersion": API_VERSION, "kind": KIND, **chosen["policy"]})
    try:
        read_policy(text.encode(), f"{FIELD}.policy")
    except PolicyError as error:
        raise ConfigurationProblemError(str(error)) from None
    return text


def standing(
    metadata: Json,
    binding: Json,
    chosen: Json,
    *,
    role: str,
    labels: Json,
    placed: Json,
    gates: Sequence[str] = (),
) -> Iterator[Json]:
    """Give the account, its rights and the CronJob, all but the last two of the metadata's name.

    A ConfigMap of that name has policy.yaml and scheduler.yaml. `chosen` has fields of spec.descheduler.
    """
    account = {"kind": "ServiceAccount", "name": metadata["name"], "namespace": metadata["namespace"]}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": binding,
        "roleRef": {"apiGroup": RBAC, "kind": CLUSTER_ROLE, "name": role},
        "subjects": [account],
    }
    pod = {
        "serviceAccountName": metadata["name"],
        "restartPolicy": "Never",
        "securityContext": POD_SECURITY,
        "containers": [_container(chosen, gates)],
        "volumes": [
            {"name": "configuration", "configMap": {"name": metadata["name"]}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}},
        ],
        **placed,
    }
    job = {
        # A plan that failed is made anew at its next time: by then the cluster is another.
        "backoffLimit": 0,
        "activeDeadlineSeconds": chosen.get("activeDeadlineSeconds", 7200),
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    yield {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {
            "schedule": chosen.get("schedule", "*/30 * * * *"),
            **({"timeZone": chosen["timeZone"]} if "timeZone" in chosen else {}),
            "suspend": chosen.get("suspend", False),
            # Each plan counts on what the one before has done.
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": job},
        },
    }


def _container(chosen: Json, gates: Sequence[str]) -> Json:
    arguments = [
        "deschedule",
        f"--policy={_FOLDER}/policy.yaml",
        f"--config={_FOLDER}/scheduler.yaml",
        "--dry-run" if chosen.get("dryRun", True) else "--execute",
    ]
    if "maxEvictionsPerMinute" in chosen:
        arguments.append(f"--max-evictions-per-minute={chosen['maxEvictionsPerMinute']}")
    if "patience" in chosen:
        arguments.append(f"--patience={parse_duration(chosen['patience']).seconds:g}")
    if gates:
        arguments.append(f"--feature-gates={','.join(gates)}")
    return {
        "name": "descheduler",
        "image": chosen["image"],
        "imagePullPolicy": chosen.get("imagePullPolicy") or "IfNotPresent",
        "args": arguments,
        "resources": chosen.get("resources") or _REQUESTS,
        "securityContext": RESTRICTED,
        "volumeMounts": [
            {"name": "configuration", "mountPath": _FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 (the container's own)
        ],
    }
