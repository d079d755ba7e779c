"""Processes that die or hang in the middle of a run: nothing is lost, nothing is bound twice."""

import signal
import tempfile
from pathlib import Path

import pytest

from tests.e2e.running import IMPOSSIBLE, bound, cluster, decided, some_pods

pytestmark = pytest.mark.e2e

NODES = 150
TRACED = {"OTEL_TRACES_EXPORTER": "none"}


@pytest.fixture
async def running(tmp_path, api_server):
    """All processes up, no pods yet."""
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        async with cluster(tmp_path, Path(sockets), nodes=NODES, server=api_server, **TRACED) as found:
            yield found


def unbound(pods):
    """The names of the pods that are on no node."""
    return [pod["metadata"]["name"] for pod in pods if not bound(pod)]


def is_sharing(pod):
    return pod["spec"]["schedulerName"] == "gpu-share"


async def test_scheduler_killed(running):
    """A scheduler killed in the middle of a run is followed by one that finishes it."""
    submitted = some_pods(gpu=250, others=150)
    await running.create(submitted)
    before = await running.reach(lambda pods: sum(map(bound, pods)) >= 60, "a part is bound")
    await running.kill("scheduler")
    assert len(unbound(before)) > 1, "the scheduler was killed after its work was done"
    await running.start_scheduler()

    pods = await running.reach(lambda pods: all(map(decided, pods)), "all are decided")
    report = await running.report(missing_events_allowed=True)

    assert len(submitted) == len(pods)
    assert [IMPOSSIBLE] == unbound(pods)
    assert () == report.violations


async def test_plugin_killed(running):
    """While a killed plugin is away the other profiles go on; once it is back its pods are bound."""
    submitted = some_pods(gpu=200, others=100)
    await running.create(submitted[:150])
    await running.reach(lambda pods: sum(map(bound, filter(is_sharing, pods))) >= 20, "a part is bound")
    await running.kill("gpu-share")
    await running.create(submitted[150:])

    def others_decided(pods):
        return all(decided(pod) for pod in pods if not is_sharing(pod))

    before = await running.reach(others_decided, "the other profiles' pods are decided without the plugin")
    assert any(is_sharing(pod) and not bound(pod) for pod in before)
    await running.start_plugin()

    pods = await running.reach(lambda pods: all(map(decided, pods)), "all are decided")
    report = await running.report()

    assert len(submitted) == len(pods)
    assert [IMPOSSIBLE] == unbound(pods)
    assert () == report.violations


async def test_plugin_hangs(running):
    """A plugin that stops answering holds up its own pods only, and until it answers again."""
    submitted = some_pods(gpu=60, others=60)
    running.send("gpu-share", signal.SIGSTOP)
    await running.create(submitted)

    def others_decided(pods):
        return all(decided(pod) for pod in pods if not is_sharing(pod))

    before = await running.reach(others_decided, "the other profiles' pods are decided without the plugin")
    assert not any(is_sharing(pod) and bound(pod) for pod in before)
    running.send("gpu-share", signal.SIGCONT)

    pods = await running.reach(lambda pods: all(map(decided, pods)), "all are decided")
    report = await running.report()

    assert [IMPOSSIBLE] == unbound(pods)
    assert () == report.violations
