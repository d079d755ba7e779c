"""The same extender, asked through `extenders:` and through the plugin http-extender: the same decisions."""

import json
import sys
from contextlib import asynccontextmanager

import pytest

from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.extender import ExtenderError
from berth.testing.clusters import table
from berth_http_extender import HttpExtender
from berth_http_extender.plugin import LEFT_OUT
from berth_sdk import Code
from berth_sdk.testing import Refused, make_node, make_pod, running
from tests.fakes import attempt_at
from tests.unit.conformance.test_plugins import process
from tests.unit.extender.webhook import Webhook, extending, serving
from tests.unit.scheduler_at_work import eventually, node, scheduling

DONGLE = "example.com/dongle"
NODES = [make_node(f"n{i}") for i in range(3)]
POD = make_pod("p")


def whole(*names):
    return {"metadata": {}, "items": [{"metadata": {"name": name}} for name in names]}


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param({"NodeNames": ["n1"], "Nodes": whole("n0")}, id="both forms"),
        pytest.param({"Nodes": whole("n2")}, id="nodes"),
        pytest.param({"nodenames": ["n1"], "NODES": {"Items": whole("n0")["items"]}}, id="letter case"),
        pytest.param({"NodeNames": [], "Nodes": None, "FailedNodes": {"n0": "why"}}, id="no node passes"),
        pytest.param(
            {
                "Nodes": whole("n2"),
                "FailedNodes": {"n0": "may", "n1": "help"},
                "FailedAndUnresolvableNodes": {"n1": "final"},
            },
            id="final reasons win",
        ),
        pytest.param({"Nodes": whole("n2"), "FailedNodes": {"n2": "passes all the same"}}, id="both ways"),
        pytest.param({}, id="empty"),
        pytest.param(None, id="null"),
        pytest.param({"Error": "on strike"}, id="its own error"),
        pytest.param({"Nodes": whole("stranger"), "NodeNames": ["stranger"]}, id="a stranger"),
        pytest.param(["no object"], id="not understood"),
        pytest.param(503, id="a status"),
    ],
)
async def test_replies(reply, by_name):
    """Whatever an extender replies, the same nodes are left, with the same reasons, or the call fails."""
    webhook = Webhook(filter=reply)
    async with serving(webhook):
        entry = {"filterVerb": "filter", "nodeCacheCapable": by_name}
        through_extenders = await left_by_extender(webhook, entry)
        through_plugin = await left_by_plugin(webhook, entry)

    assert through_extenders == through_plugin
    assert webhook.requests[0] == webhook.requests[1]


@asynccontextmanager
async def through_extenders(webhook, **entry):
    """The client of `extenders:`, an attempt at the pod, and the nodes."""
    entry = {"urlPrefix": webhook.url, "weight": 1, **entry}
    async with extending(entry) as ([client], nodes, pods):
        read_node, read_pod = nodes.decoding(decoder(Node)), pods.decoding(decode_pod)
        known = [read_node(json.dumps(each).encode()) for each in NODES]
        yield client, attempt_at(table(known), read_pod(json.dumps(POD).encode())), known


async def left_by_extender(webhook, entry):
    """Which nodes pass, and why others don't and whether evicting pods may help; or that the call fails."""
    async with through_extenders(webhook, **entry) as (client, attempt, nodes):
        try:
            verdicts = await client.filter(attempt, nodes)
        except ExtenderError:
            return "failed"
    reasons = {name: (text, True) for name, text in verdicts.failed.items()}
    reasons |= {name: (text, False) for name, text in verdicts.unresolvable.items()}
    return set(verdicts.passed), {name: why for name, why in reasons.items() if name not in verdicts.passed}


async def left_by_plugin(webhook, entry):
    """The same through the plugin; nodes that were left out without a word count under no reason."""
    async with running(HttpExtender(), *NODES, arguments={"urlPrefix": webhook.url, **entry}) as host:
        host.once = True
        try:
            answer = await host.filter(POD)
        except Refused:
            return "failed"
    reasons = {
        name: (why.text, why.code is Code.UNSCHEDULABLE)
        for name, why in answer.nodes.items()
        if why != LEFT_OUT
    }
    return set(answer.passing(node["metadata"]["name"] for node in NODES)), reasons


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param([{"Host": "n0", "Score": 1}, {"Host": "n2", "Score": 10}], id="scores"),
        pytest.param([{"host": "n1", "SCORE": 3}, {"Host": "n1", "Score": 4}], id="twice, and letter case"),
        pytest.param([{"Host": "stranger", "Score": 9}], id="a stranger"),
        pytest.param([], id="none"),
    ],
)
async def test_priorities(reply):
    """An extender's score counts tenfold, through both."""
    webhook = Webhook(prioritize=reply)
    async with serving(webhook):
        async with through_extenders(webhook, prioritizeVerb="prioritize") as (client, attempt, nodes):
            scores = await client.prioritize(attempt, nodes)
        arguments = {"urlPrefix": webhook.url, "prioritizeVerb": "prioritize"}
        async with running(HttpExtender(), *NODES, arguments=arguments) as host:
            points = await host.score(POD)

    assert points == {f"n{i}": 10 * scores.get(f"n{i}", 0) for i in range(3)}
    assert webhook.requests[0] == webhook.requests[1]


def pod(name, dongle=True, **spec):
    requests = {"cpu": "1", **({DONGLE: "1"} if dongle else {})}
    return make_pod(name, requests=requests) | {
        "spec": {
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
            ],
            **spec,
        }
    }


def with_dongles(name):
    document = node(name, place=name)
    document["status"]["allocatable"][DONGLE] = document["status"]["capacity"][DONGLE] = "4"
    return document


PLACES = {"first": "n3", "second": "n2", "third": "n3"}


def kept(sent):
    """Nothing for `nowhere`, and n2 and n3 for the others, each node with its own reason."""
    names = (
        [each["metadata"]["name"] for each in sent["Nodes"]["items"]] if sent["Nodes"] else sent["NodeNames"]
    )
    if sent["Pod"]["metadata"]["name"] == "nowhere":
        return {"FailedAndUnresolvableNodes": dict.fromkeys(names, "no dongle is plugged in")}
    left = [name for name in names if name in {"n2", "n3"}]
    reasons = {name: "the dongle is broken" for name in names if name not in left}
    return {"Nodes": whole(*left), "NodeNames": left, "FailedNodes": reasons}


def preferred(sent):
    return [{"Host": PLACES[sent["Pod"]["metadata"]["name"]], "Score": 10}]


async def decisions(tmp_path, webhook, **doors):
    """Where each pod is, or what its condition says; and who was asked about which pods."""
    pods = [*map(pod, (*PLACES, "nowhere")), pod("plain", dongle=False, nodeSelector={"place": "n1"})]
    documents = [*(with_dongles(f"n{i}") for i in range(4)), *pods]

    async with scheduling(tmp_path / "kubeconfig", *documents, **doors) as (sandbox, _):

        def found():
            return {
                name: document["spec"].get("nodeName")
                or [each["message"] for each in document.get("status", {}).get("conditions", ())]
                for entry in sandbox.store.collection("pods").entries()
                for document in [entry.decode()]
                for name in [document["metadata"]["name"]]
            }

        await eventually(lambda: all(found().values()))
        asked = {(verb, sent["Pod"]["metadata"]["name"]) for verb, sent in webhook.requests}
        return found(), asked


@pytest.mark.e2e
@pytest.mark.parametrize("by_name", [True, False])
async def test_a_whole_scheduler(tmp_path, by_name):
    """The same pods land on the same nodes or fit nowhere for the same reasons; the same are asked about."""
    entry = {
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "nodeCacheCapable": by_name,
        "managedResources": [{"name": DONGLE}],
    }
    webhook, other = (Webhook(filter=kept, prioritize=preferred) for _ in range(2))
    async with (
        serving(webhook),
        serving(other),
        process(sys.executable, "-m", "berth_http_extender") as plugin,
    ):
        extenders = [{"urlPrefix": webhook.url, "weight": 1, **entry}]
        before = await decisions(tmp_path, webhook, extenders=extenders)
        after = await decisions(
            tmp_path,
            other,
            sidecars={"http-extender": plugin.address},
            arguments={"urlPrefix": other.url, **entry},
        )

    assert before == after
    assert {**PLACES, "plain": "n1"} == {
        name: where for name, where in before[0].items() if name != "nowhere"
    }
    assert "4 no dongle is plugged in" in before[0]["nowhere"][0]
