"""Two shards: a profile, a lease and nodes of its own colour for each."""

import yaml

SHARDS = ("red", "blue")


def profile(color):
    """A profile of that name for the nodes of that colour."""
    expression = {"key": "color", "operator": "In", "values": [color]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    added = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"schedulerName": color, "pluginConfig": [{"name": "NodeAffinity", "args": added}]}


SHARDED = yaml.safe_dump_all(
    [
        {"profiles": [profile(color) for color in SHARDS]},
        {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "ShardList",
            "shards": [{"name": color, "profiles": [color]} for color in SHARDS],
        },
    ]
)
"""What a configuration without profiles is followed by."""


def lease(color, **spec):
    """The lease of a shard; held by no process unless it says so."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": f"kube-scheduler-{color}", "namespace": "kube-system"},
        "spec": {"holderIdentity": "", **spec},
    }
