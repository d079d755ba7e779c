"""The table compares what can be compared."""

import json

import pytest

from tests.scheduler_perf.report import BEGIN, END, Report, replaced
from tests.scheduler_perf.tree import Selector, Workload


def make_workload(**fields):
    given = {"topic": "misc", "test": "Basic", "name": "5000Nodes", "labels": frozenset(), "gates": {}}
    return Workload(**{**given, "parameters": {}, "operations": (), **fields})


def figures(rate, **more):
    return {
        "Average": rate,
        "pods": 10,
        "first to last": rate * 2,
        "seconds": 1.0,
        "CPU s": 0.5,
        "CPU ms a pod": 50.0,
        "server ms a pod": 120.0,
        "peak MiB": 80.0,
        "attempts": 10,
        "measured": rate,
        **more,
    }


@pytest.fixture
def report():
    return Report(waiting=False, real=False, command="python -m tests.scheduler_perf", date="2026-01-02")


def row(report, scheduler):
    cells = next(report.cells(key) for key in report.rows if key[2] == scheduler)
    return cells[-3:]


def test_ratios(report):
    """To upstream's threshold, and to kube-scheduler in the same run; the medians of several."""
    workload = make_workload(threshold=50.0)
    report.add(workload, "kube-scheduler", [("", figures(100.0))])
    for rate in (150.0, 400.0, 200.0):
        report.add(workload, "berth", [("", figures(rate))])

    assert ["50.0", "4.00", "2.00"] == row(report, "berth")
    assert ["50.0", "2.00", ""] == row(report, "kube-scheduler")
    assert "300-800" in report.cells(next(key for key in report.rows if key[2] == "berth"))


def test_a_shortened_workload_has_no_ratio_to_a_threshold(report):
    """The threshold is of the whole one."""
    report.add(make_workload(threshold=50.0, shortened="1/10"), "berth", [("", figures(100.0))])

    assert ["50.0", "", ""] == row(report, "berth")


def test_less_may_be_better(report):
    """Above 1 is passed in either case."""
    workload = make_workload(threshold=50.0, selector=Selector("took", {}, "Average", expect_lower=True))
    report.add(workload, "berth", [("", figures(100.0, measured=10.0))])

    assert "5.00" == row(report, "berth")[1]


def test_too_few_samples(report):
    """Without a sample of a second the rate from the first pod to the last is compared."""
    report.add(make_workload(), "kube-scheduler", [("", figures(100.0, Average=None))])
    report.add(make_workload(), "berth", [("", figures(150.0, Average=None))])

    assert "1.50" == row(report, "berth")[2]


def test_markdown_between_two_marks(report):
    """Date, command, figures, and what was not played; what stands around stays."""
    report.add(make_workload(threshold=50.0), "berth", [("", figures(100.0))])
    report.add(make_workload(threshold=50.0), "kube-scheduler", [("", figures(40.0))])
    report.fail(make_workload(name="other"), "berth", "no end")
    page = replaced(f"before\n{BEGIN}\nold\n{END}\nafter\n", report.markdown())

    assert page.startswith(f"before\n{BEGIN}\n2026-01-02, `python -m tests.scheduler_perf`.")
    assert page.endswith(f"\n- not played: misc: Basic/other (berth): no end\n{END}\nafter\n")
    assert "| Basic/5000Nodes | 100 | 40.0 | 50.0 | 2.50 | 2.00 | 50.0 | 50.0 | 80.0 | 80.0 |" in page
    assert report.failed
    with pytest.raises(ValueError, match="no place for the table"):
        replaced("nothing", "table")


def test_the_file_for_the_dashboard(report):
    """Each run's figures under upstream's names."""
    report.add(make_workload(threshold=50.0), "berth", [("test", figures(100.0))])
    first = json.loads(report.data_items())["dataItems"][0]

    assert ({"Average": 100.0, "AverageThreshold": 50.0}, "pods/s") == (first["data"], first["unit"])
    assert ("Basic/5000Nodes/test", "SchedulingThroughput") == (
        first["labels"]["Name"],
        first["labels"]["Metric"],
    )
