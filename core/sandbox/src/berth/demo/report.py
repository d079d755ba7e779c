"""What a run came to, as text for a person."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from berth.demo.checker import CheckReport, ClusterSummary
from berth.demo.files import RunFiles
from berth.demo.latency import PERCENTILES, StageLatency
from berth.demo.processes import Usage

MAX_REASONS = 12

SHOWN_RESOURCES = (
    ("cpu", "CPU"),
    ("memory", "memory"),
    ("gpu-share.berth.dev/milli-gpu", "GPU"),
)


class RunResult(msgspec.Struct, frozen=True):
    """All that the report is made of. Units: seconds."""

    summary: ClusterSummary
    check: CheckReport
    latencies: Sequence[StageLatency]
    usage: Mapping[str, Usage]
    seconds: float
    submit_seconds: float
    traces_not_taken: int = 0
    """Traces that have not reached the collector that the OTEL_* variables name."""


def report_lines(result: RunResult, files: RunFiles, port: int) -> list[str]:
    """The report, a line an item."""
    return [
        "",
        *_outcomes(result),
        "",
        *_allocation(result),
        "",
        *_latencies(result),
        "",
        *_usage(result),
        *_reasons(result),
        "",
        *result.check.lines(),
        "",
        *_further(files, port, result.traces_not_taken),
    ]


def _outcomes(result: RunResult) -> list[str]:
    profiles = result.summary.profiles
    bound = sum(outcome.bound for outcome in profiles.values())
    lines = [f"{'profile':<20}{'pods':>8}{'bound':>8}{'unschedulable':>15}{'waiting':>9}"]
    lines += [
        f"{name:<20}{o.pods:>8}{o.bound:>8}{o.unschedulable:>15}{o.waiting:>9}"
        for name, o in profiles.items()
    ]
    rate = bound / result.seconds if result.seconds else 0.0
    lines.append(
        f"{bound} pods bound in {result.seconds:.1f} s, {rate:.0f} pods/s "
        f"(submitted within {result.submit_seconds:.1f} s)"
    )
    return lines


def _allocation(result: RunResult) -> list[str]:
    parts = []
    for name, label in SHOWN_RESOURCES:
        use = result.summary.resources.get(name)
        if use is not None:
            parts.append(f"{label} {100 * use.ratio:.1f} %")
    return ["allocated: " + ", ".join(parts)]


def _latencies(result: RunResult) -> list[str]:
    head = "".join(f"{f'p{p}':>10}" for p in PERCENTILES)
    lines = [f"{'milliseconds':<20}{'count':>8}{head}"]
    for latency in result.latencies:
        values = "".join(f"{value:>10.2f}" for value in latency.milliseconds)
        lines.append(f"{latency.stage:<20}{latency.count:>8}{values}")
    return lines


def _usage(result: RunResult) -> list[str]:
    lines = [f"{'process':<20}{'CPU s':>8}{'peak MiB':>10}"]
    lines += [
        f"{name:<20}{usage.cpu_seconds:>8.1f}{usage.peak_mebibytes:>10.0f}"
        for name, usage in result.usage.items()
    ]
    return lines


def _reasons(result: RunResult) -> list[str]:
    reasons = sorted(result.summary.reasons.items(), key=lambda item: (-item[1].pods, item[0]))
    if not reasons:
        return []
    lines = ["", "why pods did not fit (pods that said so, nodes in all):"]
    lines += [f"{r.pods:>8} pods {r.nodes:>9} nodes  {text}" for text, r in reasons[:MAX_REASONS]]
    if len(reasons) > MAX_REASONS:
        lines.append(f"         and {len(reasons) - MAX_REASONS} more reasons")
    return lines


def _further(files: RunFiles, port: int, not_taken: int) -> list[str]:
    berth, server = Path(sys.argv[0]), f"https://127.0.0.1:{port}"
    return [
        f"traces, a span a line: {files.traces}",
        *([f"no collector has taken {not_taken} of them: see {files.log('scheduler')}"] if not_taken else ()),
        "to look further, keep the run up (berth demo --keep, make run ARGS=--keep) and try",
        f"  kubectl --kubeconfig {files.kubeconfig} get pods -n openb -o wide",
        f"  kubectl --kubeconfig {files.kubeconfig} describe node openb-node-0000",
        f"  {berth} explain pod openb-pod-0000 -n openb --insecure-skip-tls-verify --server {server}",
    ]
