"""What docs/tracing.md says holds: its commands run, its settings are known, its example is valid."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from berth.operator.definitions import scheduler_definition
from berth.telemetry.traces import sampling
from tests.e2e.collector import collecting

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/tracing.md").read_text(encoding="utf-8")
PROGRAMS = Path(sys.executable).parent
EXAMPLE = ROOT / "kustomize/components/tracing/collector"


@pytest.mark.e2e
async def test_commands_on_this_machine(tmp_path):
    """The page's run reaches the collector, whose port is another here; scheduler and plugin send traces."""
    (command,) = re.findall(r"^OTEL_EXPORTER_OTLP_ENDPOINT=\S+ berth demo.*$", PAGE, flags=re.MULTILINE)
    with collecting() as collector:
        there = command.replace("http://127.0.0.1:4317", collector.endpoint)
        run = await asyncio.create_subprocess_shell(
            there,
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.DEVNULL,
        )
        assert 0 == await run.wait()

    assert {"berth-scheduler", "gpu-share"} == {span.service for span in collector.spans}
    assert 50 == sum(span.attributes.get("berth.result") == "scheduled" for span in collector.spans)


def test_settings():
    """Every field of a Scheduler's tracing and every variable of ours is in the table."""
    table = PAGE.partition("## Which attempts are traced")[2].partition("##")[0]
    (version,) = scheduler_definition()["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields = set(spec["telemetry"]["properties"]["tracing"]["properties"])
    variables = {sampling.FAILED_PER_MINUTE, sampling.SLOW_PER_MINUTE, sampling.SLOW_SECONDS}

    assert fields - {"samplingPercent"} == set(re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE))
    assert variables == set(re.findall(r"BERTH_\w+", table))


def test_example_is_valid():
    """The collector's objects are valid, and its pipelines use what its configuration has."""
    done = subprocess.run(
        [PROGRAMS / "kubectl", "kustomize", EXAMPLE], capture_output=True, text=True, check=True
    )
    for one in yaml.safe_load_all(done.stdout):
        kubernetes_validate.validate(one, "1.36", strict=True)
    config = yaml.safe_load((EXAMPLE / "config.yaml").read_text())

    for pipeline in config["service"]["pipelines"].values():
        assert all(set(names) <= set(config[kind]) for kind, names in pipeline.items())
    assert set(config["service"]["extensions"]) == set(config["extensions"])


def test_the_schedulers_collector_is_the_example():
    """The endpoint that the component tracing sets is the example's service."""
    component = yaml.safe_load((EXAMPLE.parent / "kustomization.yaml").read_text())
    tracing = yaml.safe_load(component["patches"][0]["patch"])["spec"]["telemetry"]["tracing"]

    assert "http://otel-collector.observability:4317" == tracing["endpoint"]
    assert tracing["endpoint"] in PAGE
