"""What a sidecar is sent of a pod as it would be, and what is kept of its answer."""

import msgspec
import pytest

from berth.framework.hypothetical_pod import HypotheticalPod
from berth_plugin_proto import identity_pb2
from tests.unit.out_of_tree.scripted import Scripted, cycle, hosted, passing

PATHS = identity_pb2.PodFields(paths=["/spec/priority"])


def plugin_of(**capabilities):
    """A plugin whose verdicts are about single nodes, which lets all of them pass."""

    async def passes(request, _context):
        return passing(request)

    made = Scripted(node_local=True, **capabilities)
    made.replies["FilterScore"] = passes
    return made


@pytest.fixture
def plugin():
    """It looks at the priority alone."""
    return plugin_of(pod_fields=PATHS)


def supposing(pod, **changes):
    """A state of a trial of the pod with these fields otherwise, the pod, and the supposition."""
    state, changed = cycle(0), pod.with_spec(msgspec.structs.replace(pod.spec, **changes))
    state.write(HypotheticalPod, HypotheticalPod(pod, changed))
    return state, changed, state.read(HypotheticalPod)


async def test_it_is_sent_the_pod_as_it_would_be(plugin):
    """Under a UID that it never heard of; nothing is kept of what it says."""
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod()
        await harness.filter(pod)
        state, changed, supposed = supposing(pod, priority=7)
        codes = await harness.filter(changed, state)

    sent = plugin.requests("FilterScore")[-1].call.pod
    document = msgspec.json.decode(sent.object)
    assert [0, 0, 0] == codes.tolist()
    assert (supposed.uid, pod.name, 0) == (sent.uid, sent.name, sent.attempt)
    assert (7, supposed.uid) == (document["spec"]["priority"], document["metadata"]["uid"])
    assert (2, 1) == (len(plugin.requests("FilterScore")), len(harness.plugin.cached))


async def test_it_is_not_asked_about_a_change_that_it_does_not_look_at(plugin):
    """What it said of the pod as it is holds for the pod as it would be."""
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod()
        await harness.filter(pod)
        state, changed, _ = supposing(pod, node_selector={"disk": "ssd"})
        codes = await harness.filter(changed, state)

    assert [0, 0, 0] == codes.tolist()
    assert 1 == len(plugin.requests("FilterScore"))


async def test_a_plugin_that_names_no_fields_is_asked_each_time():
    plugin = plugin_of()
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod()
        state, changed, _ = supposing(pod, node_selector={"disk": "ssd"})
        await harness.filter(changed, state)

    (request,) = plugin.requests("FilterScore")
    assert {"disk": "ssd"} == msgspec.json.decode(request.call.pod.object)["spec"]["nodeSelector"]
