"""Figures are taken as upstream takes them."""

import os

import pytest

from tests.scheduler_perf.cluster import cpu_seconds_of_tree
from tests.scheduler_perf.collecting import Throughput, attempts, buckets, histogram, measured
from tests.scheduler_perf.tree import Selector

METRICS = """\
# TYPE scheduler_schedule_attempts_total counter
scheduler_schedule_attempts_total{{profile="default-scheduler",result="scheduled"}} {scheduled}
scheduler_schedule_attempts_total{{profile="default-scheduler",result="unschedulable"}} 4
# TYPE took_seconds histogram
took_seconds_bucket{{plugin="A",le="0.1"}} {fast}
took_seconds_bucket{{plugin="A",le="0.2"}} {all}
took_seconds_bucket{{plugin="A",le="+Inf"}} {all}
took_seconds_sum{{plugin="A"}} {sum}
took_seconds_count{{plugin="A"}} {all}
"""
BEFORE = METRICS.format(scheduled=1, fast=10, all=10, sum=0.5)
AFTER = METRICS.format(scheduled=30, fast=15, all=20, sum=1.7)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param([0, 0, 50], [], id="the first sample only begins"),
        pytest.param([50, 150, 350], [100, 200], id="pods since the last one"),
        pytest.param([50, 50, 50, 350], [100, 100, 100], id="an interval without pods is part of the next"),
        pytest.param([50, 150, 150], [100], id="nothing after the last pod"),
    ],
)
def test_samples(counts, expected):
    """A sample a second, as upstream's collector has them."""
    throughput = Throughput()
    for second, scheduled in enumerate(counts):
        throughput.sample(scheduled, float(second))

    assert expected == throughput.samples


def test_buckets():
    """Percentiles are samples, not between them."""
    found = buckets([4.0, 1.0, 3.0, 2.0])

    assert {"Average": 2.5, "Perc50": 2.0, "Perc90": 4.0, "Perc95": 4.0, "Perc99": 4.0} == found
    assert {} == buckets([])


def test_attempts():
    """All results count."""
    assert 34 == attempts(AFTER)
    assert 0 == attempts("")


def test_histogram():
    """What was observed in between, in milliseconds, linear within a bucket."""
    found = histogram("took_seconds", {"plugin": "A"}, BEFORE, AFTER)

    assert pytest.approx(120.0) == found["Average"]
    assert pytest.approx(100.0) == found["Perc50"]
    assert pytest.approx(180.0) == found["Perc90"]
    assert {} == histogram("took_seconds", {"plugin": "B"}, BEFORE, AFTER)


def test_what_a_threshold_is_compared_with():
    """Throughput, or the metric that the workload names."""
    selector = Selector("took_seconds", {"plugin": "A"}, "Average")

    assert 7.0 == measured({"Average": 7.0}, Selector(), BEFORE, AFTER)
    assert pytest.approx(120.0) == measured({"Average": 7.0}, selector, BEFORE, AFTER)


def test_cpu_of_a_tree():
    """What a process started counts with it: etcd and kube-apiserver are children of one that is known."""
    own = cpu_seconds_of_tree(os.getpid())

    assert 0 < own <= cpu_seconds_of_tree(os.getppid())
