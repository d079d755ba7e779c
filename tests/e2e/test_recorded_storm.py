"""What a scheduler decided under faults, as a process, is decided again by another process."""

import asyncio
import json
import subprocess

import pytest

from berth.demo.processes import program
from tests.e2e.fault_rules import Fault
from tests.e2e.recorded_storm import recorded

pytestmark = pytest.mark.e2e

PODS = 150
WEIGHTED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""


async def test_a_recorded_storm_is_replayed(tmp_path):
    file, faults = await recorded(tmp_path, PODS)
    assert {Fault.STATUS_AFTER.value, Fault.CUT_WATCH.value, Fault.EXPIRE_WATCH.value} <= faults.keys()

    same = await replayed(file)
    found = json.loads(same.stdout)
    assert (same.returncode, found["differences"], found["warnings"]) == (0, [], [])
    assert found["attempts"] >= PODS
    assert found["events"] > 2 * PODS

    other = tmp_path / "other.yaml"
    other.write_text(WEIGHTED)
    weighted = await replayed(file, f"--config={other}")
    different = json.loads(weighted.stdout)["differences"][0]
    assert weighted.returncode == 1
    assert different["node"] != different["recordedNode"]
    assert different["scores"].keys() == {different["node"], different["recordedNode"]}


async def replayed(file, *options):
    """What the command says of the recording."""
    command = [program("berth"), "simulate", "replay", str(file), "-o", "json", *options]
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False, text=True)
