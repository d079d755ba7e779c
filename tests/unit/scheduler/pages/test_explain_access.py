"""A developer asks why a pod is where it is, through the API server, of schedulers at work."""

import asyncio
import json

import pytest

from berth.sandbox.access.identity import service_account
from tests.unit.explaining_at_work import JANE, ROOT, ask, explaining, explanation, pod


@pytest.fixture
async def world(tmp_path):
    """Two replicas of one scheduler and one of another, pods in two namespaces."""
    pods = (pod("team-a", "p", "first"), pod("team-b", "p", "first"), pod("team-a", "q", "second"))
    foreign = pod("team-a", "r", "third")
    async with explaining(tmp_path, ["first", "first", "second"], *pods, foreign) as found:
        yield found


async def until_answered(url, path, token):
    """The first answer that does not ask to try again."""
    async with asyncio.timeout(30):
        while True:
            code, document = await ask(url, path, token)
            if code != 503:
                return code, document
            await asyncio.sleep(0.05)


async def test_explanations_through_the_api_server(world):
    """Jane sees pods of her namespace, of whichever scheduler, and is refused next door."""
    token, url = world.sandbox.access.issue(JANE), world.sandbox.url
    for name, profile in (("p", "first"), ("q", "second")):
        code, document = await until_answered(url, explanation("team-a", name), token)
        assert (200, "Explanation", profile) == (code, document["kind"], document["profile"])
    code, status = await ask(url, explanation("team-b", "p"), token)
    assert (403, "Forbidden") == (code, status["reason"])
    _, answer = await until_answered(url, explanation("team-a", "r"), token)
    assert "third" in json.dumps(answer)


async def test_every_address_answers_the_same(world):
    """Leader, standby and another scheduler: each gives what the leader knows."""
    token = world.sandbox.access.issue(JANE)
    answers = []
    for port in world.ports:
        code, document = await until_answered(f"https://127.0.0.1:{port}", explanation("team-a", "p"), token)
        answers.append((code, len(document["attempts"]) > 0, document["pod"]))
        assert 403 == (await ask(f"https://127.0.0.1:{port}", explanation("team-b", "p"), token))[0]

    assert [(200, True, "team-a/p")] * 3 == answers


async def test_who_may_explain_nothing(world):
    """A service account without the right is refused at the port, too, whatever headers it sends."""
    token = world.sandbox.access.issue(service_account("team-a", "robot"))
    forged = {"X-Remote-User": "root", "X-Remote-Group": "system:masters", "X-Berth-Sent-On-By": "a"}
    for url in (world.sandbox.url, f"https://127.0.0.1:{world.ports[0]}"):
        assert 403 == (await ask(url, explanation("team-a", "p"), token, **forged))[0]


async def test_discovery(world):
    """The group stands among those of the API server, with its resource."""
    token, url = world.sandbox.access.issue(JANE), world.sandbox.url
    _, groups = await ask(url, "/apis", token)
    _, resources = await ask(url, ROOT, token)

    assert "explain.berth.dev" in [one["name"] for one in groups["groups"]]
    assert ["podexplanations"] == [one["name"] for one in resources["resources"]]
