"""The load of a cluster as a plan goes by it, or why there is none."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from berth.config.descheduling.metrics import MetricsUtilization
from berth.config.descheduling.metrics_rules import METRIC_RESOURCE
from berth.descheduling.load.readings import Reading, Sample
from berth.framework.pluralize import pluralize

MAX_AGE: Final = timedelta(seconds=300)
"""Older metrics are not believed; load-aware's maxAgeSeconds is the same by default."""
MAX_NAMED: Final = 5

Amounts = Mapping[str, float]


class Load(msgspec.Struct, frozen=True):
    """What is in use, in the scheduler's units; of MetricResource in percent.

    `pods` are by key, None where the source has numbers of nodes alone.
    """

    source: str
    nodes: Mapping[str, Amounts]
    pods: Mapping[str, Amounts] | None

    def unknown(self, names: Iterable[str]) -> str:
        """Says of which nodes the source has nothing; empty where it has of all."""
        missing = sorted(set(names).difference(self.nodes))
        if not missing:
            return ""
        shown = ", ".join(missing[:MAX_NAMED]) + (", ..." if len(missing) > MAX_NAMED else "")
        within = f"of the last {MAX_AGE.seconds} seconds"
        remedy = (
            "see the log of metrics-server and the node's kubelet"
            if self.pods is not None
            else "let the query have a sample of every node, labelled instance with the node's name"
        )
        what = f"{self.source}: no metrics {within} of {pluralize(len(missing), 'node')} ({shown})"
        return f"{what}: neither relieved nor counted on; {remedy}"


class LoadFailure(msgspec.Struct, frozen=True):
    """A source without an answer; the text names it, what happened, and what to do."""

    text: str


Loads = Mapping[MetricsUtilization, Load | LoadFailure]


def measured(
    source: str, nodes: Mapping[str, Reading], pods: Mapping[str, Reading], now: datetime
) -> Load | LoadFailure:
    """The load by metrics-server; metrics that are too old are none."""
    known = {name: each.amounts for name, each in nodes.items() if now - each.at <= MAX_AGE}
    if not known:
        text = f"no metrics of the last {MAX_AGE.seconds} seconds of any of {pluralize(len(nodes), 'node')}"
        return LoadFailure(f"{source}: {text}; see the log of metrics-server")
    return Load(source, known, {key: each.amounts for key, each in pods.items() if now - each.at <= MAX_AGE})


def sampled(source: str, samples: Mapping[str, Sample], now: datetime) -> Load | LoadFailure:
    """The load by Prometheus: each number has to be from 0 to 1."""
    for name, sample in samples.items():
        if not 0 <= sample.value <= 1:
            text = f"node {name[:60]} has {sample.value:g}"
            return LoadFailure(f"{source}: {text}; let the query give numbers from 0 to 1")
    known = {
        name: {METRIC_RESOURCE: 100 * each.value}
        for name, each in samples.items()
        if now - each.at <= MAX_AGE
    }
    if not known:
        return LoadFailure(f"{source}: the query has no sample of any node; try it in Prometheus' own page")
    return Load(source, known, None)
