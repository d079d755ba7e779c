"""Which objects are a Scheduler's: those with its controller reference and its labels.

An object that only has the name that one would have is left as it is; errors.NotControlledError says so.
"""

from berth.operator.kinds import FIELD_MANAGER, MANAGED_BY, Json, SchedulerKey, key_of, scheduler_of


def is_controlled(found: Json, scheduler: Json) -> bool:
    """Say whether an object is this Scheduler's.

    Cluster-wide objects cannot refer to an owner in a namespace: there labels and the name decide.
    """
    if "namespace" in found["metadata"]:
        return bool(controller_uid(found) == scheduler["metadata"]["uid"])
    return is_cluster_wide_of(found, key_of(scheduler))


def is_cluster_wide_of(found: Json, key: SchedulerKey) -> bool:
    """Say whether a cluster-wide object is kept for the Scheduler of that name."""
    metadata = found["metadata"]
    named = metadata["name"].endswith(f":{key.namespace}:{key.name}") and "namespace" not in metadata
    managed = (metadata.get("labels") or {}).get(MANAGED_BY) == FIELD_MANAGER
    return bool(named and managed and scheduler_of(found) == key)


def controller_uid(found: Json) -> str:
    """Give the UID of an object's controller, nothing where it has none."""
    owners = found["metadata"].get("ownerReferences") or ()
    return next((str(one["uid"]) for one in owners if one.get("controller")), "")
