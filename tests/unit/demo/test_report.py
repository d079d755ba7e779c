"""The report of a run says what a reader has to know of its traces."""

import pytest

from berth.demo.checker import CheckReport, ClusterSummary
from berth.demo.files import RunFiles
from berth.demo.latency import StageLatency, not_taken
from berth.demo.progress import read_progress
from berth.demo.report import RunResult, report_lines
from berth.telemetry.traces.spans import ROOT_NAME

IN_FILE = [StageLatency("Bind", 7, (0.0,) * 3), StageLatency(ROOT_NAME, 5, (0.0,) * 3)]


@pytest.mark.parametrize(
    ("exported", "exporters", "expected"),
    [
        pytest.param(5, 0, 0, id="a file alone"),
        pytest.param(5, 1, 5, id="no collector answered"),
        pytest.param(8, 1, 2, id="some were lost"),
        pytest.param(11, 1, 0, id="one more meanwhile"),
    ],
)
def test_traces_that_no_collector_has_taken(exported, exporters, expected):
    assert expected == not_taken(IN_FILE, exported, exporters)


def test_exported_traces_are_read_from_the_metrics():
    text = 'berth_traces_total{outcome="exported"} 12.0\nberth_traces_total{outcome="failed"} 3.0\n'

    assert {"exported": 12, "failed": 3} == read_progress(text).traces


@pytest.mark.parametrize("lost", [0, 5])
def test_the_report_says_what_no_collector_has_taken(lost, tmp_path):
    """And where to read why; nothing where all were taken, or none was to be sent."""
    files = RunFiles(tmp_path, tmp_path)
    result = RunResult(
        ClusterSummary({}, {}, {}), CheckReport((), 0, 0, 0, 0, 0), IN_FILE, {}, 1.0, 1.0, lost
    )
    said = [line for line in report_lines(result, files, 1) if "collector" in line]

    assert said == ([f"no collector has taken 5 of them: see {tmp_path}/scheduler.log"] if lost else [])
