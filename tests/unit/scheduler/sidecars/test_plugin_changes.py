"""A change of plugins that would reach one replica alone, or be undone, is refused with where to make it."""

from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from berth.scheduler.sidecars.plugin_admin import PluginAdmin
from berth.scheduler.sidecars.plugin_changes import how_long, where_to_change


@dataclass
class Leadership:
    leads: bool = True
    leader: str = ""


class Attaching:
    """No plugins, whatever is done to them."""

    async def detach(self, name, profiles):
        """Do as if."""

    async def shadow(self, name, *, on):
        """Do as if."""


class Turns:
    """The loop that asks is the loop that answers."""

    async def ask(self, question):
        """Answer at once."""
        return await question()


async def nothing():
    """Do nothing."""


@asynccontextmanager
async def asked(why):
    """The paths, in a process whose plugins are to be changed there, or here if it is empty."""
    app = web.Application()
    PluginAdmin(Attaching, list, nothing, Turns(), lambda: why, holds="while it leads").mount(app.router)
    async with TestClient(TestServer(app)) as client:
        yield client


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
def test_the_list_keeps_plugins(kept_by, leadership, expected):
    """An operator's Scheduler comes first, then the leader."""
    found = where_to_change(kept_by, leadership)

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
    async with asked("ask the leader") as client:
        answer = await client.request(method, path)

        assert expected == answer.status
        assert ("ask the leader" in await answer.text()) == (expected == 409)


@pytest.mark.parametrize(
    ("elects", "plugins_file", "expected"),
    [
        pytest.param(
            True, "/etc/p.yaml", ("while this replica leads", "edit /etc/p.yaml in every"), id="list"
        ),
        pytest.param(True, "", ("goes by its own list", "start every replica with a PluginList"), id="none"),
        pytest.param(False, "/etc/p.yaml", ("until this scheduler ends", "edit /etc/p.yaml"), id="alone"),
    ],
)
def test_how_long(elects, plugins_file, expected):
    """How long a change holds, and what keeps it."""
    found = how_long(elects=elects, plugins_file=plugins_file)

    assert [True, True] == [words in found for words in expected]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/plugins"),
        ("DELETE", "/plugins/colours"),
        ("PUT", "/plugins/colours/shadow"),
        ("DELETE", "/plugins/colours/shadow"),
    ],
)
async def test_made(method, path):
    """The answer to a change that is made here says how long it holds."""
    empty = b'{"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": []}'
    async with asked("") as client:
        answer = await client.request(method, path, data=empty if path == "/plugins" else None)

        assert (200, "while it leads") == (answer.status, (await answer.json())["message"])
