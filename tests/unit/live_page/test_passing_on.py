"""The page on loopback: passed on with the user's token, to nothing but the page, from no other name."""

import ssl
from contextlib import asynccontextmanager

import aiohttp
import pytest

from berth.client.errors import ConfigurationError
from berth.live_page.pages import HEADERS
from berth.live_page.passing_on import passing_on
from berth.serving.access import Access
from tests.failures.reporting import reports
from tests.unit.live_page.states import Scene, collected, served

CONTEXT = ssl._create_unverified_context()
MISSING = ConfigurationError("kubeconfig", "users[0].user.exec", "no such program", "install it")


class Port:
    """A secure port for which some tokens count, and a user with one after the other."""

    def __init__(self, *tokens, valid="good"):
        self._tokens = list(tokens)
        self._valid = valid
        self.asked = []

    async def review(self, question):
        self.asked.append((question.token, question.verb, question.path))
        if question.token != self._valid:
            return None
        return Access("jane", allowed=True)

    async def token(self):
        return self._tokens.pop(0)


@asynccontextmanager
async def looking(port):
    """A browser in front of that port: gives the function that gets a path."""
    async with (
        served(Scene(collected()).pages, port.review) as url,
        passing_on(url, CONTEXT, port.token) as address,
        aiohttp.ClientSession(address.removesuffix("/live")) as client,
    ):

        async def get(path, **headers):
            async with client.get(path, headers=headers, allow_redirects=False) as answer:
                return answer.status, await answer.read(), answer.headers

        yield get


async def test_the_page_with_the_users_token():
    """As the secure port serves it, with its headers, to the user whose token it is."""
    port = Port("good")
    async with looking(port) as get:
        status, body, headers = await get("/live")

    assert 200 == status
    assert b"<title>Berth live</title>" in body
    assert set(HEADERS.items()) <= set(headers.items())
    assert [("good", "get", "/live")] == port.asked


async def test_what_the_browser_has_is_not_sent_again():
    async with looking(Port("good")) as get:
        _, _, headers = await get("/live/state.json")
        status, body, _ = await get("/live/state.json", **{"If-None-Match": headers["ETag"]})

    assert (304, b"") == (status, body)


async def test_a_token_that_has_run_out_is_renewed():
    port = Port("old", "good")
    async with looking(port) as get:
        first, _, _ = await get("/live")
        second, _, _ = await get("/live")

    assert (200, 200) == (first, second)
    assert ["old", "good", "good"] == [token for token, _, _ in port.asked]


async def test_a_token_that_cannot_be_had():
    """The page says why: a kubeconfig's program failed, or its file is gone."""

    async def none():
        raise MISSING

    async with (
        passing_on("https://127.0.0.1:1", CONTEXT, none) as address,
        aiohttp.ClientSession() as client,
        client.get(address) as answer,
    ):
        found = answer.status, await answer.text()

    assert (502, f"no token: {MISSING}\n") == found


async def test_a_user_without_a_token_is_refused():
    """By the scheduler, whose answer it is."""
    async with looking(Port("", "")) as get:
        assert 401 == (await get("/live"))[0]


@pytest.mark.parametrize("path", ["/plugins", "/metrics", "/livez", "/lively", "/explained", "/debug/cache"])
async def test_nothing_else_is_passed_on(path):
    port = Port("good")
    async with looking(port) as get:
        assert 404 == (await get(path))[0]
    assert [] == port.asked


@pytest.mark.parametrize("host", ["evil.example:80", "127.0.0.1", "localhost"])
async def test_no_other_name_leads_here(host):
    """A site that lets its name point at loopback gets nothing."""
    port = Port("good")
    async with looking(port) as get:
        assert 421 == (await get("/live", Host=host))[0]
    assert [] == port.asked


async def test_the_root_leads_to_the_page():
    async with looking(Port("good")) as get:
        status, _, headers = await get("/")

    assert (302, "/live") == (status, headers["Location"])


@reports("live-page-away", answer="the live page: `502`, with the address of the scheduler, and the cause")
async def test_a_scheduler_that_does_not_answer():
    """Is named."""
    async with (
        passing_on("https://127.0.0.1:1", CONTEXT, Port("good").token) as address,
        aiohttp.ClientSession() as client,
        client.get(address) as answer,
    ):
        assert 502 == answer.status
        assert (await answer.text()).startswith("https://127.0.0.1:1: ")
