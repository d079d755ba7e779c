"""Runs of workloads as one table, as Markdown, and as the file that upstream's dashboard reads.

Source of the file's form: test/integration/scheduler_perf/util.go DataItems (Kubernetes v1.36.2).
"""

import json
from dataclasses import dataclass, field
from statistics import median

from tests.benchmarks.tables import Table, rounded
from tests.scheduler_perf.collecting import PERCENTS, THROUGHPUT

BERTH, OTHER = "berth", "kube-scheduler"
BUCKETS = ("Average", *(f"Perc{p}" for p in PERCENTS))
HEADINGS = (
    *("workload", "scheduler", "pods", *BUCKETS, "first to last", "spread", "CPU s", "CPU ms a pod"),
    *("server ms a pod", "peak MiB", "attempts", "threshold", "x threshold", "x kube-scheduler"),
)
COLUMNS = (
    *("workload", "pods/s", "by kube-scheduler", "threshold", "x kube-scheduler", "x threshold"),
    *("CPU ms a pod", "by kube-scheduler", "MiB", "by kube-scheduler"),
)
"""Those of the Markdown table."""
WHILE, BEFORE = "created while it runs", "there before it starts"
BEGIN, END = "<!-- scheduler_perf -->", "<!-- /scheduler_perf -->"


@dataclass
class Row:
    """All runs of one collection of a workload by one scheduler."""

    workload: object
    scheduler: str
    collection: str
    runs: list[dict] = field(default_factory=list)

    def figure(self, name):
        """The median of the runs that have it; None where none has."""
        values = [run[name] for run in self.runs if run.get(name) is not None]
        return median(values) if values else None

    @property
    def spread(self):
        """Least and most pods a second, first to last, of several runs."""
        values = [run["first to last"] for run in self.runs if run.get("first to last")]
        return f"{rounded(min(values))}-{rounded(max(values))}" if len(values) > 1 else ""

    @property
    def rate(self):
        """What schedulers are compared by: the average of upstream's samples, else first to last."""
        return self.figure("Average") or self.figure("first to last")

    @property
    def of_threshold(self):
        """How many times the threshold was reached; above 1 is passed, also where less is better."""
        value, threshold = self.figure("measured"), self.workload.threshold
        if not value or not threshold or self.workload.shortened:
            return None
        return threshold / value if self.workload.selector.expect_lower else value / threshold


class Report:
    """What was played and what was not."""

    def __init__(self, *, waiting, real, command, date):
        self.rows = {}
        self.others = []
        self.failed = False
        server = "a real kube-apiserver" if real else "the sandbox"
        self.title = f"{THROUGHPUT}, pods/s, on {server}; pods {BEFORE if waiting else WHILE}"
        self.command = command
        self.date = date
        self._waiting = waiting

    def add(self, workload, scheduler, results):
        """Take the figures of one run."""
        for collection, figures in results:
            key = workload.topic, workload.title, scheduler, collection
            self.rows.setdefault(key, Row(workload, scheduler, collection)).runs.append(figures)

    def refuse(self, workload, scheduler, reason):
        """Take note of a workload that is not played here."""
        self.others.append((workload, scheduler, reason))

    def fail(self, workload, scheduler, reason):
        """Take note of a run that came to no end."""
        self.failed = True
        self.refuse(workload, scheduler, reason)

    def cells(self, key):
        """The row's cells, all as text."""
        row, (topic, title, _, collection) = self.rows[key], key
        name = " ".join(
            filter(None, (title, f"({row.workload.shortened})" if row.workload.shortened else ""))
        )
        if sum(other[:3] == key[:3] for other in self.rows) > 1:
            name += f" [{collection}]"
        against = self._times(row, self.rows.get((topic, title, OTHER, collection)))
        figures = [row.figure(each) for each in ("pods", *BUCKETS, "first to last")]
        used = [
            row.figure(each) for each in ("CPU s", "CPU ms a pod", "server ms a pod", "peak MiB", "attempts")
        ]
        ratios = [row.workload.threshold, row.of_threshold, against]
        return [name, row.scheduler, *map(_cell, figures), row.spread, *map(_cell, [*used, *ratios])]

    def show(self, echo):
        """Print the table, and what is not in it."""
        table = Table(self.title, list(HEADINGS))
        for key in self.rows:
            table.add(*self.cells(key))
        table.show()
        for line in self.not_played():
            echo(line)

    def not_played(self):
        """A line for each workload without figures."""
        for workload, scheduler, reason in self.others:
            yield f"not played: {workload.topic}: {workload.title} ({scheduler}): {reason}"

    def markdown(self):
        """A line for each workload, with the schedulers beside each other, its date and its command."""
        workloads = dict.fromkeys((key[0], key[1], key[3]) for key in self.rows)
        lines = [f"{self.date}, `{self.command}`. {self.title}.", "", _line(COLUMNS)]
        lines += [_line(["---"] * len(COLUMNS)), *(_line(self._side_by_side(*each)) for each in workloads)]
        refused = [f"- {line}" for line in self.not_played()]
        return "\n".join([*lines, *([""] if refused else []), *refused])

    def _side_by_side(self, topic, title, collection):
        ours = self.rows.get((topic, title, BERTH, collection))
        theirs = self.rows.get((topic, title, OTHER, collection))
        row = ours or theirs
        name = f"{title} ({row.workload.shortened})" if row.workload.shortened else title
        times = [self._times(ours, theirs), ours and ours.of_threshold]
        pairs = [
            each and each.figure(figure) for figure in ("CPU ms a pod", "peak MiB") for each in (ours, theirs)
        ]
        rates = [each and each.rate for each in (ours, theirs)]
        return [name, *map(_cell, [*rates, row.workload.threshold, *times, *pairs])]

    def _times(self, row, theirs):
        """How many times kube-scheduler's pods a second; None where that cannot be said."""
        if not row or not theirs or row is theirs or not row.rate or not theirs.rate:
            return None
        return row.rate / theirs.rate

    def data_items(self):
        """Every run, as upstream's dashboard reads it, with what was measured besides."""
        items = [
            {"data": data, "unit": unit, "labels": {**labels, "Metric": metric}}
            for row in self.rows.values()
            for number, run in enumerate(row.runs)
            for labels in (self._labels(row, number),)
            for metric, unit, data in _metrics(run, row)
        ]
        return json.dumps({"version": "v1", "dataItems": items}, indent=2) + "\n"

    def _labels(self, row, number):
        return {
            "Name": "/".join(filter(None, (row.workload.title, row.collection))),
            "Topic": row.workload.topic,
            "Scheduler": row.scheduler,
            "Pods": BEFORE if self._waiting else WHILE,
            "Shortened": row.workload.shortened or "no",
            "Run": str(number + 1),
        }


def _metrics(run, row):
    """(metric, unit, data) of a run, in upstream's names where it has some."""
    throughput = {bucket: run[bucket] for bucket in BUCKETS if bucket in run}
    if row.workload.threshold and throughput and not row.workload.shortened:
        throughput[f"{row.workload.selector.bucket}Threshold"] = row.workload.threshold
    yield THROUGHPUT, "pods/s", throughput
    yield "SchedulingDuration", "s", {"Duration": run["seconds"]}
    yield "FirstToLast", "pods/s", {"Average": run["first to last"]}
    yield "SchedulerCPU", "s", {"Total": run["CPU s"]}
    yield "ServerCPU", "ms", {"Pod": run["server ms a pod"]}
    yield "SchedulerMemory", "MiB", {"Max": run["peak MiB"]}
    yield "ScheduleAttempts", "attempts", {"Total": run["attempts"], "Pods": run["pods"]}


def _cell(value):
    return "" if value is None or value is False else rounded(value)


def _line(cells):
    return f"| {' | '.join(cells)} |"


def replaced(page, table):
    """The page with the table between its two marks. Raises: ValueError where it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no place for the table: write {BEGIN} and {END} into it, each on a line")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"
