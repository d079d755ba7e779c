"""A developer asks why a pod is where it is, through the API server, of schedulers at work."""

import asyncio
import json

import pytest

from berth.aggregated_api import kinds
from berth.aggregated_api.leaders import ANNOTATION, Published
from berth.aggregated_api.replicas import AUDIENCE
from berth.sandbox.access.identity import service_account
from berth.sandbox.free_port import LOOPBACK
from berth.serving.access import Access
from tests.suite import PATIENCE_SECONDS
from tests.unit.aggregated_api.serving import serving
from tests.unit.explaining_at_work import JANE, OSCAR, ask, explaining, explanation, gang, pod


@pytest.fixture
async def cluster(tmp_path):
    """Two replicas of one scheduler and one of another, pods in two namespaces."""
    pods = (pod("team-a", "p", "first"), pod("team-b", "p", "first"), pod("team-a", "q", "second"))
    foreign = pod("team-a", "r", "third")
    gangs = [*gang("team-a", "g", "first"), *gang("team-a", "h", "second"), *gang("team-b", "g", "first")]
    async with explaining(tmp_path, ["first", "first", "second"], *pods, foreign, *gangs) as found:
        yield found


async def until_answered(url, path, token, settled=lambda _document: True):
    """The first answer that does not ask to try again, and in which what is waited for has come about."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            code, document = await ask(url, path, token)
            if code not in (429, 503) and settled(document):
                return code, document
            await asyncio.sleep(0.05)


async def test_explanations_through_the_api_server(cluster):
    """Jane sees pods of her namespace, of whichever scheduler, and is refused next door."""
    token, url = cluster.sandbox.access.issue(JANE), cluster.sandbox.url
    for name, profile in (("p", "first"), ("q", "second")):
        code, document = await until_answered(url, explanation("team-a", name), token)
        assert (200, "Explanation", profile) == (code, document["kind"], document["profile"])
    code, status = await ask(url, explanation("team-b", "p"), token)
    assert (403, "Forbidden") == (code, status["reason"])
    _, answer = await until_answered(url, explanation("team-a", "r"), token)
    assert "third" in json.dumps(answer)


async def test_every_address_answers_the_same(cluster):
    """Leader, standby and another scheduler: each gives what the leader knows."""
    token = cluster.sandbox.access.issue(JANE)
    answers = []
    for port in cluster.ports:
        url = f"https://127.0.0.1:{port}"
        code, document = await until_answered(
            url, explanation("team-a", "p"), token, lambda found: found["attempts"]
        )
        answers.append((code, len(document["attempts"]) > 0, document["pod"]))
        assert 403 == (await ask(f"https://127.0.0.1:{port}", explanation("team-b", "p"), token))[0]

    assert [(200, True, "team-a/p")] * 3 == answers


async def test_groups_of_her_namespace(cluster):
    """Of whichever scheduler, whatever address is asked; next door they are refused like pods."""
    token = cluster.sandbox.access.issue(JANE)
    for url in (cluster.sandbox.url, *(f"https://127.0.0.1:{port}" for port in cluster.ports)):
        for name in ("g", "h"):
            code, document = await until_answered(
                url, kinds.POD_GROUP.path("team-a", name), token, lambda found: found["pods"] == 1
            )
            assert (200, "PodGroupExplanation") == (code, document["kind"])
            assert "The gang needs 2 pods and has 1: 1 more have to be created." == document["cause"]
        assert 403 == (await until_answered(url, kinds.POD_GROUP.path("team-b", "g"), token))[0]
        code, status = await until_answered(url, kinds.POD_GROUP.path("team-a", "x"), token)
        assert (404, True) == (code, "no PodGroup team-a/x is known" in status["message"])


async def test_nodes_profiles_and_queues(cluster):
    """They take a role for the cluster; each address gives what the leaders know."""
    jane, token = cluster.sandbox.access.issue(JANE), cluster.sandbox.access.issue(OSCAR)
    for url in (cluster.sandbox.url, *(f"https://127.0.0.1:{port}" for port in cluster.ports)):
        for kind, name in ((kinds.NODE, "n1"), (kinds.PROFILE, "first"), (kinds.QUEUE, "first")):
            assert 403 == (await until_answered(url, kind.path("", name), jane))[0]
            code, document = await until_answered(url, kind.path("", name), token)
            assert (200, kind.name, name) == (code, document["kind"], document["metadata"]["name"])
            code, _ = await until_answered(url, kind.path("", "x"), token)
            assert 404 == code
        for profile, pods in (("first", 2), ("second", 1)):
            tried = await until_answered(
                url, kinds.PROFILE.path("", profile), token, lambda found, pods=pods: found["pods"] == pods
            )
            assert profile == tried[1]["profile"]
            _, document = await until_answered(url, kinds.QUEUE.path("", profile), token)
            assert [profile] == document["profiles"]


async def test_a_node_and_the_waiting_pods_of_all_schedulers(cluster):
    """Pods of both schedulers wait for it, and each address counts all of them."""
    token = cluster.sandbox.access.issue(OSCAR)
    for url in (cluster.sandbox.url, *(f"https://127.0.0.1:{port}" for port in cluster.ports)):
        _, document = await until_answered(
            url, kinds.NODE.path("", "n1"), token, lambda found: found["waiting"] == 6
        )
        assert {"first", "second"} == {one["profile"] for one in document["classes"]}


async def test_who_may_explain_nothing(cluster):
    """A service account without the right is refused at the port, too, whatever headers it sends."""
    token = cluster.sandbox.access.issue(service_account("team-a", "robot"))
    forged = {"X-Remote-User": "root", "X-Remote-Group": "system:masters", "X-Berth-Sent-On-By": "a"}
    for url in (cluster.sandbox.url, f"https://127.0.0.1:{cluster.ports[0]}"):
        assert (await ask(url, explanation("team-a", "p"), token, **forged))[0] in (401, 403)


async def test_a_lease_in_another_namespace(tmp_path, monkeypatch):
    """In kube-scheduler's place the lease is in kube-system, and the replicas answer all the same."""
    monkeypatch.setenv("POD_NAME", "schedulers")
    monkeypatch.setenv("POD_NAMESPACE", "berth-system")
    async with explaining(tmp_path, ["first", "first"], leases="kube-system") as cluster:
        token = cluster.sandbox.access.issue(OSCAR)
        for port in cluster.ports:
            url = f"https://127.0.0.1:{port}"
            code, document = await until_answered(url, kinds.QUEUE.path("", "first"), token)
            assert (200, ["first"]) == (code, document["profiles"]), document


@pytest.mark.parametrize("has_pod", [True, False])
async def test_a_lease_that_names_another_server(cluster, has_pod):
    """It is sent no token where no pod has the address, and never one that the API server takes."""
    token, seen = cluster.sandbox.access.issue(JANE), []

    async def review(question):
        seen.append(question.token)
        return Access("evil", allowed=False)

    async def nothing(_asked, **_how):
        return {}

    async with serving(nothing, review) as evil:
        host = LOOPBACK if has_pod else "localhost"
        said = Published("evil", f"{host}:{evil.port}", evil.fingerprint, ("third",))
        cluster.sandbox.load([lease("evil", said)])
        code, status = await ask(cluster.sandbox.url, explanation("team-a", "r"), token)

    assert (503, has_pod) == (code, bool(seen))
    assert has_pod or "no pod in namespace berth-system has the address localhost" in status["message"]
    assert [None] * len(seen) == [cluster.sandbox.access.by_token(one) for one in seen]
    assert all(cluster.sandbox.access.by_token(one, [AUDIENCE]) for one in seen)


def lease(name, said):
    """A lease of the schedulers' namespace, held by who says that."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "berth-system", "annotations": {ANNOTATION: said.text()}},
        "spec": {"holderIdentity": said.identity},
    }


async def test_discovery(cluster):
    """The group stands among those of the API server, with its resource."""
    token, url = cluster.sandbox.access.issue(JANE), cluster.sandbox.url
    _, groups = await ask(url, "/apis", token)
    _, resources = await ask(url, kinds.ROOT, token)

    assert "explain.berth.dev" in [one["name"] for one in groups["groups"]]
    assert {
        "podexplanations": True,
        "podgroupexplanations": True,
        "nodeexplanations": False,
        "profileexplanations": False,
        "queues": False,
    } == {one["name"]: one["namespaced"] for one in resources["resources"]}
