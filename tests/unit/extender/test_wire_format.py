"""What goes over the wire, field by field, and how replies are read."""

import asyncio
import json

import msgspec
import pytest

from berth.client.write_guard import WriteGuard
from berth.framework.extender import Victims
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.extender import NotAskedError, ReplyError, StatusError, UnansweredError
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import ManualClock
from tests.fakes import attempt_at
from tests.unit.extender.webhook import Webhook, client_of, extending, serving

NODES = [make_node("n0"), make_node("n1")]


def attempt(pod=None, placed=()):
    return attempt_at(table(NODES, placed), pod or make_pod("p"))


async def test_filter_sends_whole_objects():
    """Pod and nodes go as the API server wrote them, down to fields that scheduling never reads."""
    pod = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"hostname": "kept"}}
    node = {"metadata": {"name": "n0", "uid": "node-n0"}, "status": {"nodeInfo": {"machineID": "7"}}}
    async with serving(Webhook(filter={"NodeNames": ["n1"], "Nodes": {"items": [NAMED_N0]}})) as webhook:
        entry = {"urlPrefix": webhook.url, "filterVerb": "filter"}
        async with extending(entry) as ([client], nodes, pods):
            typed = pods.decoding(decode_pod)(json.dumps(pod).encode())
            known = nodes.decoding(decoder(Node))(json.dumps(node).encode())
            verdicts = await client.filter(attempt(typed), [known])

    expected = {"Pod": pod, "Nodes": {"metadata": {}, "items": [node]}, "NodeNames": None}
    assert [("filter", expected)] == webhook.requests
    assert "application/json" == webhook.headers[0]["Content-Type"]
    assert ["n0"] == verdicts.passed


NAMED_N0 = {"metadata": {"name": "n0"}}


async def test_filter_sends_a_pod_as_it_would_be():
    """With what scheduling never reads, under a UID of its own."""
    pod = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"hostname": "kept"}}
    async with serving(Webhook(filter={"NodeNames": ["n1"]})) as webhook:
        entry = {"urlPrefix": webhook.url, "filterVerb": "filter", "nodeCacheCapable": True}
        async with extending(entry) as ([client], _, pods):
            typed = pods.decoding(decode_pod)(json.dumps(pod).encode())
            changed = typed.with_spec(msgspec.structs.replace(typed.spec, priority=7))
            trial, supposed = attempt(changed), HypotheticalPod(typed, changed)
            trial.state.write(HypotheticalPod, supposed)
            await client.filter(trial, NODES)

    [request] = webhook.asked("filter")
    assert {"hostname": "kept", "priority": 7} == request["Pod"]["spec"]
    assert ("p", supposed.uid) == (request["Pod"]["metadata"]["name"], request["Pod"]["metadata"]["uid"])


async def test_filter_sends_names():
    """A node-cache-capable extender gets names, and null for the nodes."""
    async with (
        serving(Webhook(filter={"NodeNames": ["n1"]})) as webhook,
        client_of(webhook, filterVerb="filter", nodeCacheCapable=True) as client,
    ):
        verdicts = await client.filter(attempt(), NODES)

    [request] = webhook.asked("filter")
    assert {"Pod", "Nodes", "NodeNames"} == set(request)
    assert (None, ["n0", "n1"]) == (request["Nodes"], request["NodeNames"])
    assert "p" == request["Pod"]["metadata"]["name"]
    assert ["n1"] == verdicts.passed


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        pytest.param({"NodeNames": ["n0"], "Nodes": {"items": []}}, ["n0"], id="names come first"),
        pytest.param({"Nodes": {"items": [NAMED_N0]}}, ["n0"], id="nodes where there are no names"),
        pytest.param({"nodenames": ["n1"]}, ["n1"], id="lower-case key"),
        pytest.param({"NODES": {"Items": [NAMED_N0]}}, ["n0"], id="upper-case key"),
        pytest.param({"NodeNames": None, "Nodes": None, "Error": ""}, [], id="neither leaves nothing"),
        pytest.param({}, [], id="empty reply"),
        pytest.param(None, [], id="null"),
        pytest.param({"NodeNames": []}, [], id="empty list"),
    ],
)
async def test_filter_reply(reply, passed):
    """Names, else nodes, else nothing is what is left."""
    async with (
        serving(Webhook(filter=reply)) as webhook,
        client_of(webhook, filterVerb="filter", nodeCacheCapable=True) as client,
    ):
        assert passed == list((await client.filter(attempt(), NODES)).passed)


async def test_filter_reply_says_why():
    """Both maps of failed nodes are read."""
    reply = {"FailedNodes": {"n0": "busy"}, "FailedAndUnresolvableNodes": {"n1": "no dongle"}}
    async with (
        serving(Webhook(filter=reply)) as webhook,
        client_of(webhook, filterVerb="filter") as client,
    ):
        verdicts = await client.filter(attempt(), NODES)

    assert ({"n0": "busy"}, {"n1": "no dongle"}) == (verdicts.failed, verdicts.unresolvable)


@pytest.mark.parametrize(
    ("reply", "error", "text"),
    [
        pytest.param({"Error": "out of coffee"}, ReplyError, "out of coffee", id="its own error"),
        pytest.param(
            {"NodeNames": ["n7"]},
            ReplyError,
            'extender "{url}" claims a filtered node "n7" which is not found in the input node list',
            id="unknown node",
        ),
        pytest.param(
            500,
            StatusError,
            "failed filter with extender at URL {url}filter, code 500",
            id="not 200",
        ),
        pytest.param(
            201, StatusError, "failed filter with extender at URL {url}filter, code 201", id="other success"
        ),
    ],
)
async def test_filter_failures(reply, error, text):
    """What went wrong is said as kube-scheduler says it."""
    async with (
        serving(Webhook(filter=reply)) as webhook,
        client_of(webhook, filterVerb="filter", nodeCacheCapable=True) as client,
    ):
        with pytest.raises(error) as caught:
            await client.filter(attempt(), NODES)

        assert text.format(url=webhook.url) == str(caught.value)


async def test_reply_that_is_no_object():
    """A reply of another shape is an error, not a crash."""
    async with (
        serving(Webhook(filter=["n0"])) as webhook,
        client_of(webhook, filterVerb="filter") as client,
    ):
        with pytest.raises(ReplyError, match="reply cannot be read"):
            await client.filter(attempt(), NODES)


async def test_prioritize():
    """Scores are read by host, in any letter case, and added up where a host comes twice."""
    reply = [
        {"Host": "n0", "Score": 3},
        {"host": "n1", "SCORE": 4},
        {"Host": "n0", "Score": 2},
        {"Host": "x"},
    ]
    async with (
        serving(Webhook(rank=reply)) as webhook,
        client_of(webhook, prioritizeVerb="rank", weight=2, nodeCacheCapable=True) as client,
    ):
        scores = await client.prioritize(attempt(), NODES)

    [request] = webhook.asked("rank")
    assert (None, ["n0", "n1"]) == (request["Nodes"], request["NodeNames"])
    assert {"n0": 5, "n1": 4, "x": 0} == scores
    assert (2, True) == (client.weight, client.prioritizes)


async def test_bind():
    """A binding names pod, namespace, UID and node."""
    async with serving(Webhook(bind={"Error": ""})) as webhook, client_of(webhook, bindVerb="bind") as client:
        await client.bind(attempt().state, make_pod("p", namespace="d", uid="u"), "n1")

    expected = {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n1"}
    assert [("bind", expected)] == webhook.requests


async def test_bind_failure():
    """The extender's error is the binding's."""
    async with (
        serving(Webhook(bind={"error": "taken"})) as webhook,
        client_of(webhook, bindVerb="bind") as client,
    ):
        with pytest.raises(ReplyError, match=r"^taken$"):
            await client.bind(attempt().state, make_pod(), "n1")


@pytest.mark.parametrize("landed", [True, False])
async def test_bind_without_an_answer(landed):
    """Where the answer does not tell, the pod itself is asked; what landed is no failure."""
    looked = []

    async def look(pod, node_name):
        looked.append((pod.name, node_name))
        return landed

    async with serving(Webhook(bind=500)) as webhook:
        entry = {"urlPrefix": webhook.url, "bindVerb": "bind"}
        async with extending(entry, landed=look) as ([client], _, _):
            if landed:
                await client.bind(attempt().state, make_pod("p"), "n1")
            else:
                with pytest.raises(StatusError):
                    await client.bind(attempt().state, make_pod("p"), "n1")

    assert [("p", "n1")] == looked


async def test_bind_without_a_fresh_lease():
    """A process that cannot prove that it leads has no extender bind for it."""
    async with serving(Webhook(bind={})) as webhook:
        entry = {"urlPrefix": webhook.url, "bindVerb": "bind"}
        async with extending(entry, guard=WriteGuard(lambda: False)) as ([client], _, _):
            with pytest.raises(NotAskedError):
                await client.bind(attempt().state, make_pod("p"), "n1")

    assert [] == webhook.requests


async def test_a_binding_is_on_the_guards_account_until_it_is_answered():
    """A process that ends waits for it."""
    guard = WriteGuard(landing_seconds=60)
    async with serving(Webhook(bind="never")) as webhook:
        entry = {"urlPrefix": webhook.url, "bindVerb": "bind"}
        async with extending(entry, guard=guard) as ([client], _, _):
            binding = asyncio.create_task(client.bind(attempt().state, make_pod("p"), "n1"))
            await webhook.arrived.wait()
            under_way = await guard.settled(0)
            webhook.released.set()
            await asyncio.wait((binding,))

    assert isinstance(binding.exception(), ReplyError)
    assert (False, True) == (under_way, await guard.settled(0))


async def test_a_binding_is_waited_for_no_longer_than_the_lease_lasts():
    """What becomes of it is open, and stays on the account for as long."""
    guard = WriteGuard(landing_seconds=0.01, clock=ManualClock())
    async with serving(Webhook(bind="never")) as webhook:
        entry = {"urlPrefix": webhook.url, "bindVerb": "bind", "httpTimeout": "1h"}
        async with extending(entry, guard=guard) as ([client], _, _):
            with pytest.raises(UnansweredError, match="no answer within"):
                await client.bind(attempt().state, make_pod("p"), "n1")

    assert not await guard.settled(0)


VICTIM = make_pod("v", uid="uv", node_name="n0")


async def test_preempt_with_objects():
    """Victims go as objects by node; the reply names them by UID."""
    reply = {"NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": "uv"}], "NumPDBViolations": 2}}}
    async with (
        serving(Webhook(preempt=reply)) as webhook,
        client_of(webhook, preemptVerb="preempt") as client,
    ):
        left = await client.preempt(attempt(placed=[VICTIM]), {"n0": Victims((VICTIM,), 1)})

    [request] = webhook.asked("preempt")
    sent = request["NodeNameToVictims"]["n0"]
    assert (["v"], 1) == ([pod["metadata"]["name"] for pod in sent["Pods"]], sent["NumPDBViolations"])
    assert {"Pods", "NumPDBViolations"} == set(sent)
    assert request["NodeNameToMetaVictims"] is None
    assert {"n0": Victims((VICTIM,), 2)} == left


async def test_preempt_with_uids():
    """A node-cache-capable extender gets UIDs."""
    reply = {"nodeNameToMetaVictims": {}}
    async with (
        serving(Webhook(preempt=reply)) as webhook,
        client_of(webhook, preemptVerb="preempt", nodeCacheCapable=True) as client,
    ):
        left = await client.preempt(attempt(placed=[VICTIM]), {"n0": Victims((VICTIM,), 1)})

    [request] = webhook.asked("preempt")
    expected = {"n0": {"Pods": [{"UID": "uv"}], "NumPDBViolations": 1}}
    assert (None, expected) == (request["NodeNameToVictims"], request["NodeNameToMetaVictims"])
    assert {} == left


@pytest.mark.parametrize(
    ("victims", "text"),
    [
        (
            {"n0": {"Pods": [{"UID": "other"}]}},
            "claims to preempt pod (UID: other) on node: n0, but the pod is",
        ),
        ({"n9": {"Pods": [{"UID": "uv"}]}}, 'names node "n9", which is not known'),
    ],
)
async def test_preempt_names_what_is_not_there(victims, text):
    """Victims have to be pods on their node."""
    async with (
        serving(Webhook(preempt={"NodeNameToMetaVictims": victims})) as webhook,
        client_of(webhook, preemptVerb="preempt") as client,
    ):
        with pytest.raises(ReplyError) as caught:
            await client.preempt(attempt(placed=[VICTIM]), {"n0": Victims((VICTIM,))})

    assert text in str(caught.value)


async def test_slow_extender():
    """An answer that does not come in time is a failure that says so."""
    async with (
        serving(Webhook(filter="never")) as webhook,
        client_of(webhook, filterVerb="filter", httpTimeout="20ms") as client,
    ):
        with pytest.raises(UnansweredError) as caught:
            await client.filter(attempt(), NODES)

        said = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        assert f'Post "{webhook.url}filter": {said}' == str(caught.value)


async def test_an_address_without_a_listener():
    """A refused connection is a failure that names the URL, the address and the cause as Go does."""
    async with serving(Webhook()) as webhook:
        pass
    async with client_of(webhook, filterVerb="filter") as client:
        with pytest.raises(UnansweredError) as caught:
            await client.filter(attempt(), NODES)

    address = webhook.url.removeprefix("http://").partition("/")[0]
    said = f"dial tcp {address}: connect: connection refused"
    assert f'Post "{webhook.url}filter": {said}' == str(caught.value)


async def test_many_nodes():
    """Bodies of megabytes are sent whole."""
    nodes = [make_node(f"n{i}", labels={"filler": "x" * 1000}) for i in range(3000)]
    async with (
        serving(Webhook(filter=lambda sent: {"Nodes": sent["Nodes"]})) as webhook,
        client_of(webhook, filterVerb="filter") as client,
    ):
        verdicts = await client.filter(attempt_at(table(nodes)), nodes)

    assert [node.name for node in nodes] == verdicts.passed


async def test_trailing_slashes():
    """The verb follows the prefix after exactly one slash."""
    async with serving(Webhook(filter={})) as webhook:
        webhook.url += "//"
        async with client_of(webhook, filterVerb="filter") as client:
            await client.filter(attempt(), NODES)

    assert ["filter"] == [verb for verb, _ in webhook.requests]
