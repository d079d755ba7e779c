"""Scores that a plugin's process gets wrong: pods are bound, and each fault is reported in its own words."""

import asyncio
import json
import sys
from pathlib import Path

from click.testing import CliRunner

from berth.cli.main import main
from tests.failures.reporting import reports
from tests.sockets import served
from tests.unit.scheduler.test_plugins_at_work import PROFILE, at_work, pod

PROGRAM = Path(__file__).with_name("scores_plugin.py")
WORDS = {
    "short": "expected 2 integers, got int64 (1,)",
    "negative": "scores from -1: they must not be negative to be divided by the highest",
    "large": "scores from 0 to 101 without normalization: 0 to 100 is the range",
    "float": "expected 2 integers, got float64 (2,)",
    "text": "expected an array of 2 integers, got str",
    "raises": "score_nodes: KeyError: 'no such key'",
}


async def explained(cluster, name):
    """What `berth explain pod` prints."""
    line = ["explain", "pod", name, "--server", cluster.server, "--insecure-skip-tls-verify"]
    result = await asyncio.to_thread(CliRunner().invoke, main, line)
    assert result.exit_code == 0, result.output
    return result.output


@reports(
    "score-ignored",
    log="the plugin's own: `plugin function failed`, as rarely",
    answer="`berth plugin describe`: Last failures",
)
async def test_faults_of_scores(tmp_path):
    """No fault costs the pod its attempt; all are in the plugin's log, of the plugin and of the attempt."""
    log = tmp_path / "plugin.log"
    async with at_work(listed=False) as cluster:
        socket = cluster.folder / "wrong.sock"
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, socket, stderr=stderr)
        cluster.processes["wrong"] = process
        await served(socket, process)
        await cluster.berth("attach", "wrong", "--address", f"unix:{socket}", "--profile", PROFILE)
        cluster.sandbox.load([pod(fault, fault=fault) for fault in WORDS])
        await cluster.bound(list(WORDS))
        page = await cluster.berth("describe", "wrong")
        data = json.loads(await cluster.berth("describe", "wrong", "-o", "json"))
        explanations = {fault: await explained(cluster, fault) for fault in WORDS}

    failures = {each["pod"].partition("/")[2]: each for each in data["lastFailures"]}
    written = log.read_text()
    for fault, words in WORDS.items():
        assert ("score", "Ignore", 1) == tuple(failures[fault][k] for k in ("point", "policy", "count"))
        assert words in failures[fault]["error"]
        assert f"{words} (ignored 1 time, last for default/{fault} at " in page
        line = f"failed and was ignored, as the failure policy says: score: {failures[fault]['error']}"
        assert line in explanations[fault]
        assert words in written.replace("\\'", "'")
    assert "plugin function failed function=score err=" in written
