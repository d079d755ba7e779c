"""Figures, taken as upstream takes them.

Throughput: every second, pods scheduled since the last sample over the time since then; the first sample is
left out, and an interval without a pod counts as part of the next one, once more for each.
Source: test/integration/scheduler_perf/util.go throughputCollector, metricsCollector (Kubernetes v1.36.2).
"""

import asyncio
import math
import time
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

SAMPLE_SECONDS = 1.0
PERCENTS = (50, 90, 95, 99)
THROUGHPUT = "SchedulingThroughput"
ATTEMPTS = "scheduler_schedule_attempts_total"


class Throughput:
    """Samples of pods a second; its owner says every second how many there are so far."""

    def __init__(self):
        self.samples = []
        self._before = None
        self._at = 0.0
        self._skipped = 0

    def sample(self, scheduled, now):
        """Take a sample of so many pods scheduled so far."""
        if not scheduled:
            return
        if self._before is None:
            self._before, self._at = scheduled, now
        elif scheduled == self._before:
            self._skipped += 1
        else:
            rate = (scheduled - self._before) / (now - self._at)
            self.samples += [rate] * (self._skipped + 1)
            self._before, self._at, self._skipped = scheduled, now, 0


def buckets(samples):
    """Average and percentiles of samples; nothing where there are none."""
    if not samples:
        return {}
    ordered = sorted(samples)
    found = {f"Perc{p}": ordered[math.ceil(len(ordered) * p / 100) - 1] for p in PERCENTS}
    return {"Average": sum(ordered) / len(ordered), **found}


class Collection:
    """The figures of one collection, from its start to its end, of pods in namespaces and with labels."""

    def __init__(self, cluster, watch, namespaces, labels=None, *, name="", from_first_binding=False):
        self.name = name
        self._cluster = cluster
        self._watch = watch
        self._namespaces = set(namespaces)
        self._labels = labels
        self._from_first_binding = from_first_binding
        self._throughput = Throughput()
        self._bound_at = []
        self._cpu = self._server_cpu = 0.0
        self._metrics = ""
        self._began = 0.0
        self._sampling = None

    async def start(self, background):
        """Begin; samples are taken by a task of that group."""
        if not self._from_first_binding:
            self._metrics = await asyncio.to_thread(self._cluster.metrics)
            self._read_cpu()
        self._began = time.monotonic()
        self._watch.followers.append(self._follow)
        self._sampling = background.create_task(self._sample())

    def _follow(self, before, after):
        if after is None or not after.scheduled or (before is not None and before.scheduled):
            return
        if after.metadata.namespace not in self._namespaces or not after.has(self._labels):
            return
        if self._from_first_binding and not self._bound_at:
            self._read_cpu()
        self._bound_at.append(time.monotonic())

    def _read_cpu(self):
        self._cpu = self._cluster.usage().cpu_seconds
        self._server_cpu = self._cluster.server_cpu_seconds()

    async def _sample(self):
        due = time.monotonic()
        while True:
            due += SAMPLE_SECONDS
            await asyncio.sleep(due - time.monotonic())
            self._throughput.sample(len(self._bound_at), time.monotonic())

    async def stop(self, selector):
        """End, and give the figures: upstream's buckets, and what the scheduler used and did."""
        self._sampling.cancel()
        self._watch.followers.remove(self._follow)
        server_cpu = self._cluster.server_cpu_seconds() - self._server_cpu
        usage, seconds = self._cluster.usage(), time.monotonic() - self._began
        metrics = await asyncio.to_thread(self._cluster.metrics)
        pods, cpu = len(self._bound_at), usage.cpu_seconds - self._cpu
        spread = self._bound_at[-1] - self._bound_at[0] if pods > 1 else 0.0
        found = {
            **buckets(self._throughput.samples),
            "pods": pods,
            "first to last": (pods - 1) / spread if spread else None,
            "seconds": seconds,
            "CPU s": cpu,
            "CPU ms a pod": cpu * 1e3 / max(pods, 1),
            "server ms a pod": server_cpu * 1e3 / max(pods, 1),
            "peak MiB": usage.peak_mebibytes,
            "attempts": attempts(metrics) - attempts(self._metrics),
        }
        found["measured"] = measured(found, selector, self._metrics, metrics)
        return found


def measured(figures, selector, before, after):
    """What the threshold is compared with; None where there is no such figure."""
    if selector.name == THROUGHPUT:
        return figures.get(selector.bucket)
    return histogram(selector.name, selector.labels, before, after).get(selector.bucket)


def attempts(metrics):
    """How many attempts there were, with any result."""
    return sum(value for _, _, value in samples(metrics, ATTEMPTS))


def samples(metrics, name):
    """(name, labels, value) of each sample of one metric in the metrics' text."""
    lines = (line for line in metrics.splitlines(keepends=True) if line.startswith(name))
    for family in text_string_to_metric_families("".join(lines)):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def histogram(name, labels, before, after):
    """Average and percentiles of a histogram between two readings. Units: milliseconds, of one in seconds.

    As a quantile in Prometheus: linear within a bucket (component-base metrics/testutil Histogram.Quantile).
    """
    counts, total, sums = defaultdict(float), 0.0, 0.0
    for sign, text in ((1, after), (-1, before)):
        for kind, found, value in samples(text, name):
            if any(found.get(key) != wanted for key, wanted in labels.items()):
                continue
            if kind.endswith("_bucket"):
                counts[float(found["le"])] += sign * value
            elif kind.endswith("_sum"):
                sums += sign * value
            elif kind.endswith("_count"):
                total += sign * value
    if not total:
        return {}
    quantiles = {f"Perc{p}": _quantile(sorted(counts.items()), total * p / 100) * 1e3 for p in PERCENTS}
    return {"Average": sums / total * 1e3, **quantiles}


def _quantile(bounds, rank):
    lower, below = 0.0, 0.0
    for upper, count in bounds:
        if count >= rank:
            if math.isinf(upper):
                return lower
            share = (rank - below) / (count - below) if count > below else 1.0
            return lower + (upper - lower) * share
        lower, below = upper, count
    return lower
