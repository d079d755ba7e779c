"""Clients that claim to be the API server, or another user."""

import aiohttp
import pytest

from berth.serving.access import Access
from berth.telemetry.logs import KlogFormatter
from tests.unit.aggregated_api.certificates import DAY, TestAuthority
from tests.unit.aggregated_api.serving import CLIENTS, POD, PROXY, client, serving

FORGED = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
STRANGER = TestAuthority("front-proxy-ca")


async def explain(asked, *, was_sent_on):
    del asked, was_sent_on
    return {}


class Reviews:
    """Allows root, and keeps who asked."""

    def __init__(self):
        self.users = []

    async def __call__(self, asked):
        name = asked.user.username if asked.user else "system:anonymous"
        self.users.append(name)
        return Access(name, allowed=name == "root")


async def status(session, **headers):
    async with session.get(POD, headers=headers) as response:
        return response.status


@pytest.mark.parametrize(
    ("pair", "user"),
    [
        pytest.param(None, "system:anonymous", id="no certificate"),
        pytest.param(CLIENTS.issue("front-proxy"), "front-proxy", id="a client of the cluster, by that name"),
        pytest.param(PROXY.issue("kubelet"), "system:anonymous", id="a name that is not allowed"),
    ],
)
async def test_forged_headers(tmp_path, pair, user):
    """Headers that name a user count for nothing without the front proxy's certificate."""
    reviews = Reviews()
    async with serving(explain, reviews) as server, client(server, pair, tmp_path) as session:
        assert 403 == await status(session, **FORGED)

    assert [user] == reviews.users


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(STRANGER.issue("front-proxy"), id="an authority of the same name"),
        pytest.param(PROXY.issue("front-proxy", life=-DAY), id="run out"),
    ],
)
async def test_forged_certificates(tmp_path, pair):
    """They are refused before a request is read."""
    reviews = Reviews()
    async with serving(explain, reviews) as server, client(server, pair, tmp_path) as session:
        with pytest.raises(aiohttp.ClientError):
            await status(session, **FORGED)

    assert [] == reviews.users


async def test_the_front_proxy_is_believed(tmp_path):
    """The same headers count where the certificate is good: the tests above refuse for the right reason."""
    pair = PROXY.issue("front-proxy")
    async with serving(explain, Reviews()) as server, client(server, pair, tmp_path) as session:
        assert 200 == await status(session, **FORGED)


async def test_names_that_write_lines(tmp_path, caplog):
    """A line break in a pod's name starts no line in the audit log."""
    caplog.set_level("INFO")
    pair, path = PROXY.issue("front-proxy"), f"{POD}%0Aaudit%20user=x"
    async with serving(explain, Reviews()) as server, client(server, pair, tmp_path) as session:
        await session.get(path, headers={"X-Remote-User": "jane"})

    lines = [KlogFormatter().format(record) for record in caplog.records if "audit" in record.msg]
    assert 1 == len(lines)
    assert "\n" not in lines[0]
