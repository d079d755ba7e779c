"""A scheduler process records what it decides, and the recording is replayed."""

import asyncio
import gzip
import json

import pytest

from berth.config import load
from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.core_ports import CorePorts
from berth.scheduler.process_options import ProcessOptions
from berth.scheduler.process_recording import new_recording, no_plugins_while_recorded
from berth.serving.errors import StartError
from berth.simulation.recordings.replay import replay
from tests.unit.scheduler_at_work import eventually, node, scheduling
from tests.unit.simulation.kit import pod

CORE_PORTS = ("pods", "volumes", "claims", "pod_groups", "background", "chance")
FILES = "*.tape.gz"


def namespaced(document):
    document["metadata"]["namespace"] = "default"
    return document


def pods(sandbox):
    return [entry.decode() for entry in sandbox.store.collection("pods").entries()]


def bound(sandbox, names):
    on = {each["metadata"]["name"] for each in pods(sandbox) if each["spec"].get("nodeName")}
    return set(names) <= on


async def recorded(tmp_path):
    """A recording of pods that fit, two that fit on a late node, and one for which another is evicted."""
    folder = tmp_path / "recordings"
    names = [f"small-{i}" for i in range(6)]
    small = [namespaced(pod(name, cpu="1")) for name in names]
    async with scheduling(tmp_path / "kubeconfig", node("a"), *small, record_to=str(folder)) as (sandbox, _):
        await eventually(lambda: sum(bound(sandbox, [name]) for name in names) == 4)
        sandbox.load([node("b")])
        await eventually(lambda: bound(sandbox, names))
        sandbox.load([namespaced(pod("urgent", cpu="3", priority=1000))])
        await eventually(lambda: bound(sandbox, ["urgent"]))
    (file,) = folder.glob(FILES)
    return file


async def test_what_a_process_decides_is_decided_again(tmp_path):
    file = await recorded(tmp_path)
    found = await asyncio.to_thread(replay, file)
    assert (found.differences, found.warnings) == ([], [])
    methods = [
        output[2] for line in lines(file) for output in json.loads(line).get("o", ()) if output[0] == "call"
    ]
    assert methods.count("bind") >= 7
    assert methods.count("delete_pod") >= 1


def lines(file):
    return gzip.decompress(file.read_bytes()).splitlines()


OPTIONS = {
    "sidecars": (SidecarSpec("other", "unix:/tmp/other.sock"),),
    "plugins_file": "plugins.yaml",
}


@pytest.mark.parametrize("name", OPTIONS)
def test_plugins_in_other_processes_are_not_recorded(name, tmp_path):
    options = ProcessOptions(load(None), record_to=str(tmp_path), **{name: OPTIONS[name]})
    with pytest.raises(StartError, match="--record-to: sidecars and extenders"):
        new_recording(options, None)


def test_without_a_folder_nothing_is_recorded():
    assert new_recording(ProcessOptions(load(None)), None) is None


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    options = ProcessOptions(load(None), record_to=str(tmp_path / "file"))
    with pytest.raises(StartError, match="name a folder that can be written to"):
        new_recording(options, CorePorts(**dict.fromkeys(CORE_PORTS), clock=SYSTEM_CLOCK))


@pytest.mark.parametrize(("folder", "says"), [("", ""), ("recordings", "this scheduler is recorded")])
def test_no_plugin_is_attached_to_a_recorded_scheduler(folder, says):
    said = no_plugins_while_recorded(ProcessOptions(load(None), record_to=folder))
    assert said.partition(" (")[0] == says


def test_extenders_are_not_recorded(tmp_path):
    text = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://localhost:1", "filterVerb": "filter"}],
    }
    with pytest.raises(StartError, match="take them out"):
        new_recording(ProcessOptions(load(json.dumps(text)), record_to=str(tmp_path)), None)
