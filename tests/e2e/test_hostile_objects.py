"""Objects made to end the scheduler: it goes on, says what it set aside, and stops when it is asked to."""

import asyncio
import os
import signal

import pytest

from berth.client.resources import EVENTS, PODS
from tests.e2e.default_cluster import default_cluster
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler.test_devices_end_to_end import claim, device_class, pod, slice_of
from tests.unit.scheduler_at_work import node

pytestmark = pytest.mark.e2e

HUGE = "9" * 5_000
YEAR_NAUGHT = "0000-01-01T00:00:00Z"
PATTERN = f'"{"a" * 42}!".matches("^(a+)+$")'


def frozen(name):
    document = claim(name, "")
    document["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": PATTERN}}]
    return document


def placed(name):
    document = pod(name, cpu=HUGE)
    document["spec"]["nodeName"] = "n0"
    return document


async def test_the_process_goes_on_and_answers_sigterm(tmp_path):
    objects = [node("n0"), node("n1"), device_class(), slice_of("n1", "a"), frozen("frozen")]
    nodes, events = {}, []
    async with default_cluster(tmp_path, objects) as running:

        def look(kind, document):
            del kind
            nodes[document["metadata"]["name"]] = document["spec"].get("nodeName")

        def note(kind, document):
            del kind
            events.append((document["regarding"]["name"], document["reason"], document["type"]))

        async with running.watching(look), running.watching(note, EVENTS):
            await running.create(PODS, [placed("huge"), pod("odd", cpu="1"), pod("waits", "frozen")])
            await running.reach(lambda: nodes.get("odd"))
            await running.patch(
                PODS, "odd", {"status": {"startTime": YEAR_NAUGHT}}, "default", subresource="status"
            )
            await running.create(PODS, [pod(f"p{number}", cpu="500m") for number in range(3)])
            await running.reach(lambda: all(nodes.get(f"p{number}") for number in range(3)))
            await running.reach(lambda: ("odd", "NotTakenIn", "Warning") in events)

        counted = await running.metrics("berth_objects_set_aside_total", "berth_objects_set_aside_now")
        os.kill(running.scheduler.pid, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while running.scheduler.exit_code is None:  # noqa: ASYNC110 - a process has no event
                await asyncio.sleep(0.05)

    assert {"n1"} == {nodes[f"p{number}"] for number in range(3)}
    assert 1 <= counted['berth_objects_set_aside_total{resource="pods"}']
    assert 1 == counted['berth_objects_set_aside_now{resource="pods"}']
    # As kube-scheduler's without leader election.
    assert 1 == running.scheduler.exit_code
    assert "finished without leader elect" in running.scheduler.last_words()
