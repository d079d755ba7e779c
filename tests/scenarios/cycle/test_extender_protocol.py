"""What goes to a webhook and what may come back (core 4.15); HTTP itself is the unit tests' concern."""

from contextlib import asynccontextmanager

import msgspec
import pytest

from berth.config.loading import load
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.extender.client import ExtenderClient
from berth.out_of_tree.extender.errors import StatusError
from berth.out_of_tree.extender.http_extender import ExtenderContext, HttpExtender
from tests.fakes import OnePod
from tests.scenarios.kit.cluster import Cluster

URL = "http://127.0.0.1:1/hook"
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "bindVerb": "bind", "preemptVerb": "preempt"}


class Network(ExtenderClient):
    """In place of a network: notes what is sent and answers by verb."""

    def __init__(self, settings, replies):
        super().__init__(settings.url_prefix, settings.http_timeout, settings.tls_config)
        self.replies, self.sent = replies, []

    async def _post(self, url, verb, body, headers):
        del headers
        self.sent.append((url, msgspec.json.decode(body)))
        reply = self.replies[verb]
        if isinstance(reply, int):
            raise StatusError(f"failed {verb} with extender at URL {url}, code {reply}", reply)
        return msgspec.json.encode(reply)


class Webhook(HttpExtender):
    """An extender behind that network."""

    def __init__(self, settings, replies):
        self.network = Network(settings, replies)
        super().__init__(settings, ExtenderContext(RawObjects(), RawObjects()), self.network)

    @property
    def sent(self):
        """Addresses and bodies of what was sent."""
        return self.network.sent


@asynccontextmanager
async def webhook(replies, verbs=("filterVerb",), **settings):
    """An extender of a configuration with these verbs."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": URL, "weight": 1, **{verb: VERBS[verb] for verb in verbs}, **settings}],
    }
    hook = Webhook(load(msgspec.json.encode(document)).extenders[0], replies)
    try:
        yield hook
    finally:
        await hook.close()


async def tried(hook, *plugins, nodes=2, **pod):
    cluster = Cluster(*(plugins or [OnePod()]), extenders=[hook])
    for number in range(nodes):
        cluster.add_node(f"n{number}")
    cluster.add_pod(**pod)
    await cluster.run()
    return cluster


async def test_4_15_1_a_call_goes_to_prefix_and_verb():
    """Without the slashes in between doubled; the timeout is five seconds unless configured."""
    async with webhook(
        {"filter": {"NodeNames": ["n0"]}}, urlPrefix=f"{URL}//", nodeCacheCapable=True
    ) as hook:
        await tried(hook)

        assert f"{URL}/filter" == hook.sent[0][0]
        assert 5 == hook._settings.http_timeout.seconds


async def test_4_15_2_a_capable_extender_gets_names_alone():
    """The other form is null; what comes back by name counts."""
    async with webhook({"filter": {"NodeNames": ["n1"]}}, nodeCacheCapable=True) as hook:
        cluster = await tried(hook)
        body = hook.sent[0][1]

        assert ({"n0", "n1"}, None, "p0") == (
            set(body["NodeNames"]),
            body["Nodes"],
            body["Pod"]["metadata"]["name"],
        )
        assert {"p0": "n1"} == cluster.bound


async def test_4_15_3_and_10_8_others_get_whole_nodes():
    """They come back whole, and are the snapshot's nodes again by their names."""
    async with webhook({"filter": {"nodes": {"items": [{"metadata": {"name": "n0"}}]}}}) as hook:
        cluster = await tried(hook)
        body = hook.sent[0][1]

        assert {"n0", "n1"} == {node["metadata"]["name"] for node in body["Nodes"]["items"]}
        assert ({"p0": "n0"}, None) == (cluster.bound, body["NodeNames"])


async def test_4_15_4_no_list_means_no_node():
    """Neither names nor nodes: everything was filtered out."""
    async with webhook({"filter": {"FailedNodes": {"n0": "not here"}}}) as hook:
        cluster = await tried(hook)

        assert "0/2 nodes are available: 1 not here." == cluster.records[0].status.message


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ({"Error": "cannot say"}, "cannot say"),
        (
            {"NodeNames": ["n9"]},
            f'extender "{URL}" claims a filtered node "n9" which is not found in the input node list',
        ),
        (500, f"failed filter with extender at URL {URL}/filter, code 500"),
    ],
)
async def test_4_15_5_errors_break_the_cycle(reply, text):
    """Its own, an unknown node, and any answer but 200."""
    async with webhook({"filter": reply}, nodeCacheCapable=True) as hook:
        cluster = await tried(hook)

        assert text == cluster.records[0].status.message
        assert "SchedulerError" == cluster.condition().reason


async def test_4_15_6_scores_come_as_a_list_of_hosts():
    """The same request as filter's."""
    replies = {"prioritize": [{"Host": "n0", "Score": 1}, {"Host": "n1", "Score": 9}]}
    async with webhook(replies, verbs=["prioritizeVerb"], nodeCacheCapable=True) as hook:
        cluster = await tried(hook)

        assert {"p0": "n1"} == cluster.bound
        assert {"n0", "n1"} == set(hook.sent[0][1]["NodeNames"])


async def test_4_15_7_a_binding_names_the_pod_and_the_node():
    """The API server is not asked by us."""
    async with webhook({"bind": {}}, verbs=["bindVerb"]) as hook:
        cluster = await tried(hook, nodes=1)

        assert [
            (
                f"{URL}/bind",
                {"PodName": "p0", "PodNamespace": "default", "PodUID": "default-p0", "Node": "n0"},
            )
        ] == hook.sent
        assert [] == cluster.calls("bind")
        assert [("Scheduled", "p0", "Successfully assigned default/p0 to n0")] == cluster.notes


async def test_4_15_8_only_pods_that_want_its_resources_concern_it():
    """Requests and limits of any container, init containers too."""
    managed = [{"name": "example.com/gpu"}]
    async with webhook(
        {"filter": {"NodeNames": []}}, managedResources=managed, nodeCacheCapable=True
    ) as hook:
        cluster = await tried(hook)
        cluster.add_pod("p1", requests={"example.com/gpu": "1"})
        await cluster.run()

        assert {"p0"} == set(cluster.bound)
        assert {"p1"} == {body["Pod"]["metadata"]["name"] for _, body in hook.sent}


async def test_4_15_9_names_of_fields_may_be_written_in_any_case():
    """As Go reads them."""
    async with webhook({"filter": {"nodenames": ["n1"]}}, nodeCacheCapable=True) as hook:
        assert {"p0": "n1"} == (await tried(hook)).bound


async def test_4_15_10_resources_left_to_an_extender_are_not_fitted():
    """ignoredByScheduler replaces what NodeResourcesFit ignores, in every profile."""
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    extenders = [{"urlPrefix": URL, "filterVerb": "filter", "managedResources": managed}]
    cluster = Cluster(settings={"extenders": extenders})
    cluster.add_node()
    cluster.add_pod(requests={"example.com/gpu": "1"})
    await cluster.run()

    assert {"p0": "n0"} == cluster.bound
