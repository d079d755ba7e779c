"""Dashboards and alerts read what schedulers and plugins really export, by name, label and type."""

import asyncio
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from berth.operator.kinds import SchedulerKey
from berth.operator.metrics import OperatorMetrics
from berth.operator.reporting.conditions import (
    ARGUMENTS_ACCEPTED,
    AVAILABLE,
    DEGRADED,
    DESCHEDULING,
    KUBERNETES_TESTED,
    LEADING,
    PLUGINS_READY,
    PROGRESSING,
    StatusCondition,
)
from berth.sandbox.free_port import free_port
from berth.telemetry.metrics.metric_families import COUNTERS, HISTOGRAMS
from berth_sdk.metrics import Held, Meter
from tests.e2e.alert_cases import CASES, document
from tests.e2e.promql import MONITORING, TARGET, expressions, rules, uses
from tests.e2e.running import bound, cluster, decided, some_pods
from tests.suite import PATIENCE_SECONDS

ROOT = MONITORING.parents[2]
RUNBOOKS = "https://github.com/berth-scheduler/berth/blob/main/docs/runbooks/"
CHANGING = frozenset({"counter", "histogram"})


class Exported:
    """Metrics of several processes: the types of each series' name, and sets of labels that go together."""

    def __init__(self, *texts):
        self.types, self.labels = {}, {}
        for family in (family for text in texts for family in text_string_to_metric_families(text)):
            for name in names(family.name, family.type):
                self.types.setdefault(name, set()).add(family.type)
            for sample in family.samples:
                self.labels.setdefault(sample.name, set()).add(frozenset(sample.labels))
        # What has not happened in the run has no series yet, but labels all the same.
        for declared in (*COUNTERS, *HISTOGRAMS):
            kind = "histogram" if declared.buckets else "counter"
            for name in names(declared.name.removesuffix("_total"), kind):
                le = {"le"} if name.endswith("_bucket") else set()
                self.labels.setdefault(name, set()).add(frozenset(declared.labels) | le)

    def problem(self, use):
        """What is wrong with that use of a metric, empty if nothing is."""
        if use.metric not in self.types:
            return f"{use.metric} is not exported"
        known = self.labels.get(use.metric, {frozenset()})
        if not any(use.labels <= labels | TARGET for labels in known):
            return f"{use.metric} has the labels {sorted(map(sorted, known))}, not {sorted(use.labels)}"
        if use.as_counter and not self.types[use.metric] <= CHANGING:
            return f"{use.metric} is of type {self.types[use.metric]}, and has no rate"
        return ""

    def twice(self):
        """Names of our own that are exported with labels of two kinds."""
        return [name for name, labels in self.labels.items() if name.startswith("berth_") and len(labels) > 1]

    def labels_of(self, found):
        """All labels that results of these metrics may have."""
        return TARGET.union(*(labels for use in found for labels in self.labels.get(use.metric, ())))


def names(family, kind):
    """The names of a family's series."""
    if kind == "histogram":
        return [f"{family}{suffix}" for suffix in ("_bucket", "_sum", "_count")]
    return [f"{family}_total" if kind == "counter" else family]


@pytest.fixture
async def exported(tmp_path):
    """What a scheduler and a plugin export that have scheduled some pods."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        measured = {"BERTH_METRICS_ADDRESS": f"127.0.0.1:{port}"}
        async with cluster(tmp_path, Path(sockets), nodes=30, **measured) as running:
            submitted = some_pods(gpu=5, others=5)
            await running.create(submitted)
            await running.reach(lambda pods: sum(map(bound, pods)) == len(submitted) - 1, "all but one bound")
            await running.reach(lambda pods: all(map(decided, pods)), "one turned down")
            scheduler = await asyncio.to_thread(running.surface.read, "/metrics")
            plugin = await asyncio.to_thread(read, f"http://127.0.0.1:{port}/metrics")
    return Exported(scheduler.decode(), plugin.decode(), refusing(), of_an_operator())


def refusing():
    """What a plugin exports that was sent a wrong message, which no scheduler sends."""
    meter = Meter("refusing", "1")
    meter.refused("GENERATION_GONE")
    return meter.text(Held(0, 0, 0, 0))


def of_an_operator():
    """What an operator exports that has looked at a Scheduler."""
    metrics = OperatorMetrics()
    metrics.explain_api(unreachable=False)
    metrics.conditions(SchedulerKey("n", "a"), [StatusCondition("Available", True, "ReplicasAvailable", "")])
    return metrics.text().decode()


def read(url):
    """What is served there."""
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        return answer.read()


@pytest.mark.e2e
async def test_expressions_read_what_is_exported(exported):
    """Every metric of every panel and alert is there, with its labels, and rates are of what only grows."""
    wrong = [f"{name} is exported twice" for name in exported.twice()]
    for where, expression, shown in expressions():
        found, listed = uses(expression)
        assert found, where
        wrong += [f"{where}: {problem}" for use in found if (problem := exported.problem(use))]
        wrong += [f"{where}: no label {label}" for label in (shown | listed) - exported.labels_of(found)]

    assert [] == wrong


def test_what_an_expression_names():
    """Matchers, groupings and the functions around a metric are distinguished."""
    found, listed = uses(
        'sum by (le, a) (rate(x_bucket{b=~"c", d!="e"}[5m])) and on (f) deriv(sum(y)[1h:1m])'
    )

    assert [("x_bucket", {"b", "d"}, True), ("y", set(), False)] == found
    assert {"a", "f"} == listed


def test_every_alert_has_a_runbook():
    """The page of an alert begins with its name, and every page is listed."""
    pages = {rule["alert"]: rule["annotations"]["runbook_url"].removeprefix(RUNBOOKS) for rule in rules()}
    index = (ROOT / "docs/runbooks/README.md").read_text()

    for alert, page in pages.items():
        titles = (ROOT / "docs/runbooks" / page).read_text().partition("\n")[0].removeprefix("# ").split(", ")
        assert alert in titles
        assert f"| {alert} | [{page}]({page}) |" in index
    assert {*pages.values(), "README.md"} == {path.name for path in (ROOT / "docs/runbooks").iterdir()}


def test_every_alert_has_its_cases():
    """One that fires and one that does not."""
    assert sorted(CASES) == sorted(rule["alert"] for rule in rules())


def test_every_condition_has_an_alert():
    """Each type of condition that the operator writes to Schedulers is read by an alert."""
    types = {AVAILABLE, PROGRESSING, DEGRADED, PLUGINS_READY, DESCHEDULING, ARGUMENTS_ACCEPTED, LEADING}
    types.add(KUBERNETES_TESTED)
    read = {kind for rule in rules() for kind in types if f'type="{kind}"' in rule["expr"]}

    assert types == read


@pytest.fixture
def promtool(tmp_path):
    """A function that runs Prometheus's own tool; the rules of the alerts are in the file that it gives."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian: package prometheus)")
    document = yaml.safe_load((MONITORING / "rules.yaml").read_text())

    def run(*command, panels=()):
        groups = [*document["spec"]["groups"], *([{"name": "dashboards", "rules": panels}] if panels else ())]
        (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
        done = subprocess.run([found, *command], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert 0 == done.returncode, done.stdout + done.stderr

    return run


def test_rules_by_promtool(promtool):
    """Prometheus's own tool takes the rules, and what the dashboards' panels ask for."""
    panels = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, (_, expression, _) in enumerate(expressions())
    ]

    promtool("check", "rules", "rules.yaml", panels=panels)


def test_alerts_by_promtool(promtool, tmp_path):
    """Each alert fires where it is to, and not for standbys, other Schedulers or kube-scheduler."""
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(document(rules(), "rules.yaml")))

    promtool("test", "rules", "tests.yaml")
