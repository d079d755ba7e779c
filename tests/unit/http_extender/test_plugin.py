"""The plugin http-extender by itself: arguments, failures, deadlines, binding, connections."""

import asyncio
import base64
import ssl

import grpc
import pytest

from berth_http_extender import HttpExtender
from berth_http_extender.settings import settings_of
from berth_plugin_proto import scheduling_pb2
from berth_sdk import ArgumentError, Code
from berth_sdk.testing import make_node, make_pod, running
from tests.unit.extender.test_tls import self_signed
from tests.unit.extender.webhook import Webhook, serving

POD = make_pod("p", requests={"example.com/dongle": 1})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"urlPrefix": "extender:80"}, "urlPrefix: 'extender:80' is no URL; write http:// or https://"),
        ({"filterVerb": "filter"}, "urlPrefix: '' is no URL"),
        ({"urlprefix": ""}, "urlprefix: unknown argument; known ones are bindVerb"),
        ({"filterVerb": 1}, "filterVerb: 1 is not a text"),
        ({"httpTimeout": "5"}, "httpTimeout: '5' is no duration; write one such as 5s or 500ms"),
        ({"httpTimeout": "-1s"}, "httpTimeout: '-1s' is no duration"),
        ({"weight": 5}, "weight: the plugin's weight is what counts; write it as `weight`"),
        ({"ignorable": True}, "ignorable: write failurePolicy: {filter: Ignore, bind: Ignore}"),
        ({"preemptVerb": "preempt"}, "preemptVerb: the plugin protocol can't carry it; keep"),
        ({"managedResources": [{}]}, "managedResources[0]: {} names no resource; write"),
        (
            {"managedResources": [{"name": "a/b", "ignoredByScheduler": True}]},
            "managedResources[0].ignoredByScheduler: the scheduler does that; write the name into ignoredRes",
        ),
        (
            {"tlsConfig": {"caFile": "/nowhere/ca"}},
            "tlsConfig.caFile: /nowhere/ca: No such file or directory",
        ),
        ({"tlsConfig": {"caData": "?"}}, "tlsConfig.caData: no base64"),
        ({"tlsConfig": {"caData": "AAAA"}}, "tlsConfig.caData: no certificate in PEM"),
        ({"tlsConfig": {"insecure": "yes"}}, "tlsConfig.insecure: 'yes' is not true or false"),
    ],
)
def test_wrong_arguments(arguments, error):
    """What is wrong is named with what to write instead."""
    with pytest.raises(ArgumentError) as caught:
        settings_of(arguments)

    assert [True] == [each.startswith(error) for each in caught.value.errors]


@pytest.mark.parametrize(("text", "seconds"), [("1m30s", 90), ("250ms", 0.25), ("0s", 5), ("0", 5)])
def test_timeouts(text, seconds):
    """Durations read as in Go; zero is the default."""
    assert seconds == settings_of({"httpTimeout": text}).timeout.seconds


def entry(webhook, *verbs, **more):
    return {"urlPrefix": webhook.url, **{f"{verb}Verb": verb for verb in verbs}, **more}


def asking(webhook, *verbs, **more):
    """The plugin at work with these verbs of the webhook."""
    return running(HttpExtender(), make_node("n0"), make_node("n1"), arguments=entry(webhook, *verbs, **more))


async def test_arguments_of_nothing():
    """Without arguments, as with verbs for other pods, no extender is asked and every pod passes."""
    webhook = Webhook()
    async with serving(webhook), running(HttpExtender(), make_node("n0")) as host:
        assert Code.SKIP is (await host.filter_status(POD)).code
        managed = [{"name": "example.com/other"}]
        assert [] == await host.configure(entry(webhook, "filter", "prioritize", managedResources=managed))
        assert Code.SKIP is (await host.filter_status(POD)).code
        assert await host.score(POD) is None

    assert [] == webhook.requests


async def test_no_scores():
    """Priorities that fail are no opinion."""
    async with serving(Webhook(prioritize=500)) as webhook, asking(webhook, "prioritize") as host:
        assert await host.score(POD) is None


async def test_an_extender_that_is_silent():
    """The error says where and why; the extender's own time is kept."""
    webhook = Webhook(filter="never")
    async with serving(webhook), asking(webhook, "filter", httpTimeout="10ms") as host:
        status = await host.filter_status(POD)

    url = f"{webhook.url}filter"
    said = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert (Code.ERROR, (f'http-extender: Post "{url}": {said}',)) == (status.code, status.reasons)


@pytest.mark.parametrize("reply", [{}, {"Error": "on strike"}])
async def test_binding(reply):
    """A binding is the extender's, with the pod's identity; its error is reported."""
    async with serving(Webhook(bind=reply)) as webhook, asking(webhook, "bind") as host:
        status = await host.bind(POD, "n1")

    assert (Code.ERROR if reply else Code.SUCCESS) is status.code
    assert list(reply.values()) == list(status.reasons)
    identity = {"PodName": "p", "PodNamespace": "default", "PodUID": POD["metadata"]["uid"]}
    assert [("bind", {**identity, "Node": "n1"})] == webhook.requests


async def test_a_binding_with_annotations():
    """What the extender would lose is not left to it."""
    async with serving(Webhook(bind={})) as webhook, asking(webhook, "bind") as host:
        status = await host.bind(POD, "n1", {"devices": "0"})

    assert Code.ERROR is status.code
    assert "can't carry annotations: devices" in status.reasons[0]
    assert [] == webhook.requests


async def test_a_binding_of_another():
    """Without a verb the next binder binds."""
    async with serving(Webhook()) as webhook, asking(webhook) as host:
        assert Code.SKIP is (await host.bind(POD, "n1")).code


class Counting(Webhook):
    """Counts connections, and keeps the verb `slow` waiting until it is released."""

    def __init__(self, **replies):
        super().__init__(**replies)
        self.ports, self.asked = set(), asyncio.Event()

    async def answer(self, request):
        self.ports.add(request.transport.get_extra_info("peername")[1])
        self.asked.set()
        if request.path.endswith("slow"):
            await self.released.wait()
        return await super().answer(request)


BOTH = {"NodeNames": ["n0", "n1"]}


async def test_one_connection():
    """Questions go over the connection that is there."""
    webhook = Counting(filter=BOTH)
    async with serving(webhook), asking(webhook, "filter", nodeCacheCapable=True) as host:
        for _ in range(3):
            assert Code.SUCCESS is (await host.filter_status(POD)).code

    assert (3, 1) == (len(webhook.requests), len(webhook.ports))


async def test_new_arguments():
    """They count from the next call on, and what is under way gets its answer."""
    webhook = Counting(filter=BOTH, slow=BOTH)
    async with serving(webhook), asking(webhook) as host:
        by_name = {"urlPrefix": webhook.url, "nodeCacheCapable": True}
        await host.configure({**by_name, "filterVerb": "slow"})
        waiting = asyncio.create_task(host.filter_status(POD))
        await webhook.asked.wait()
        await host.configure({**by_name, "filterVerb": "filter"})
        assert Code.SUCCESS is (await host.filter_status(POD)).code
        assert not waiting.done()
        webhook.released.set()

        assert Code.SUCCESS is (await waiting).code
    assert ["filter", "slow"] == [verb for verb, _ in webhook.requests]


@pytest.mark.parametrize("trusted", [True, False])
async def test_https(trusted, tmp_path):
    """Only an extender of the right authority is believed."""
    certificate, key = self_signed()
    for name, data in (("tls.crt", certificate), ("tls.key", key)):
        (tmp_path / name).write_bytes(data)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    authority = certificate if trusted else self_signed()[0]
    tls = {"caData": base64.b64encode(authority).decode()}
    webhook = Webhook(filter=BOTH)
    more = {"nodeCacheCapable": True, "enableHTTPS": True, "tlsConfig": tls}
    async with serving(webhook, context), asking(webhook, "filter", **more) as host:
        status = await host.filter_status(POD)

    assert (Code.SUCCESS if trusted else Code.ERROR) is status.code


async def test_a_deadline():
    """A call of a conversation ends with its time, whatever time the extender has."""
    async with serving(Webhook(filter="never")) as webhook, asking(webhook, "filter") as host:
        request = scheduling_pb2.ConverseRequest(
            id=7, filter=scheduling_pb2.FilterRequest(call=host.call(POD))
        )
        request.timeout.FromMilliseconds(20)
        converse = host.scheduling.Converse()
        await converse.write(request)
        answer = await converse.read()
        converse.cancel()

    assert (7, grpc.StatusCode.DEADLINE_EXCEEDED.value[0]) == (answer.id, answer.error.code)
