"""The load of a cluster that is read from files: NodeMetrics and PodMetrics among their objects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from berth.config.descheduling.metrics_rules import KUBERNETES_METRICS, PROMETHEUS, source_of
from berth.config.descheduling.policy import Policy
from berth.descheduling.load.load import LoadFailure, Loads, measured
from berth.descheduling.load.readings import node_readings, pod_readings

SOURCE: Final = "metrics.k8s.io, of the input"
KINDS: Final = frozenset({"NodeMetrics", "PodMetrics"})
_COMMAND: Final = "kubectl get nodes.metrics.k8s.io,pods.metrics.k8s.io -A -o yaml"


def recorded_loads(documents: Sequence[Mapping[str, Any]], policy: Policy) -> Loads:
    """The load by those documents that are metrics, as of the newest of them."""
    by_kind: dict[str, list[bytes]] = {kind: [] for kind in KINDS}
    for document in documents:
        by_kind[document["kind"]].append(msgspec.json.encode(document))
    nodes, pods = node_readings(by_kind["NodeMetrics"]), pod_readings(by_kind["PodMetrics"])
    if nodes:
        load = measured(SOURCE, nodes, pods, max(each.at for each in nodes.values()))
    else:
        load = LoadFailure(f"{KUBERNETES_METRICS}: the input has no NodeMetrics; add those of `{_COMMAND}`")
    asked = LoadFailure(
        f"{PROMETHEUS}: a file is not asked for it; leave INPUT out, so that the cluster is read"
    )
    return {each: load if source_of(each) == KUBERNETES_METRICS else asked for each in policy.measured_by()}
