"""A change of plugins that would reach one replica alone, or be undone, is refused with where to make it."""

from dataclasses import dataclass

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from berth.scheduler.plugin_admin import PluginAdmin
from berth.scheduler.plugin_changes import changed_elsewhere


@dataclass
class Leadership:
    leads: bool = True
    leader: str = ""


class Attaching:
    """Plugins to which nothing may be done."""

    def list(self):
        """Nothing."""
        return []


class Turns:
    """The loop that asks is the loop that answers."""

    async def ask(self, question):
        """Answer at once."""
        return await question()


async def nothing():
    """Do nothing."""


@pytest.mark.parametrize(
    ("kept_by", "leadership", "expected"),
    [
        pytest.param("", Leadership(), "", id="the leader"),
        pytest.param(
            "", Leadership(leads=False, leader="pod-2_x"), "ask the leader (pod-2_x)", id="a standby"
        ),
        pytest.param("", Leadership(leads=False), "ask the leader (none yet)", id="no leader yet"),
        pytest.param("system/main", Leadership(), "--namespace system,", id="kept by an operator"),
        pytest.param("system/main", Leadership(leads=False), "--namespace system,", id="its standby"),
    ],
)
def test_elsewhere(kept_by, leadership, expected):
    """An operator's Scheduler comes first, then the leader."""
    found = changed_elsewhere(kept_by, leadership)

    assert expected in found
    assert bool(expected) == bool(found)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("PUT", "/plugins", 409),
        ("DELETE", "/plugins/colours", 409),
        ("PUT", "/plugins/colours/shadow", 409),
        ("DELETE", "/plugins/colours/shadow", 409),
        ("GET", "/plugins", 200),
    ],
)
async def test_refused(method, path, expected):
    """Every change is refused before it begins; questions are answered."""
    app = web.Application()
    PluginAdmin(Attaching, nothing, Turns(), lambda: "ask the leader").mount(app.router)
    async with TestClient(TestServer(app)) as client:
        answer = await client.request(method, path)

        assert expected == answer.status
        assert ("ask the leader" in await answer.text()) == (expected == 409)
