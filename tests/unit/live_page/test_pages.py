"""The paths of the live page: bodies, ETags, headers, and that they are collected once a second."""

import asyncio
from fnmatch import fnmatchcase

import aiohttp
import msgspec
import pytest
import yaml
from aiohttp.test_utils import make_mocked_request

from berth.live_page.pages import HEADERS
from berth.serving.access import ANONYMOUS, Access
from berth.serving.errors import LoopBusyError
from tests.failures.reporting import reports
from tests.go_toolchain import ROOT
from tests.unit.live_page.states import Scene, collected, served

PATHS = ("/live", "/live/live.css", "/live/icon.svg", "/live/live.js", "/live/state.json", "/live/nodes.json")


async def ask(scene, path, **headers):
    return await scene.pages[path](make_mocked_request("GET", path, headers=headers))


async def test_the_state_is_what_was_collected():
    moment = collected()
    found = msgspec.json.decode((await ask(Scene(moment), "/live/state.json")).body)

    assert msgspec.json.decode(msgspec.json.encode(moment.state)) == found


async def test_the_nodes_are_those_of_the_state():
    scene = Scene(collected(version="first"), collected(n=3, version="second"))
    first = await ask(scene, "/live/nodes.json")
    scene.clock.seconds += 5
    state = msgspec.json.decode((await ask(scene, "/live/state.json")).body)
    second = await ask(scene, "/live/nodes.json")

    assert ('"first"', '"second"') == (first.headers["ETag"], second.headers["ETag"])
    assert "second" == state["nodes"]
    assert 3 == len(msgspec.json.decode(second.body)["names"])


async def test_viewers_share_what_is_collected():
    """Once a second, however many ask."""
    scene = Scene(collected())
    for _ in range(3):
        await asyncio.gather(*(ask(scene, "/live/state.json") for _ in range(20)))
        scene.clock.seconds += 1

    assert 3 == scene.collections


async def test_viewers_wait_for_what_is_being_collected():
    """Those that come meanwhile get the same, and so they do where it fails."""
    scene = Scene(collected())
    scene.failure = LoopBusyError("busy")
    scene.go_on.clear()
    waiting = [asyncio.create_task(ask(scene, "/live/state.json")) for _ in range(5)]
    await asyncio.sleep(0)
    scene.go_on.set()

    assert [LoopBusyError] * 5 == [
        type(each) for each in await asyncio.gather(*waiting, return_exceptions=True)
    ]
    assert 1 == scene.collections


async def test_a_viewer_that_goes_away_does_not_take_it_from_the_others():
    scene = Scene(collected())
    scene.go_on.clear()
    first, second = (asyncio.create_task(ask(scene, "/live/state.json")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    scene.go_on.set()

    assert 200 == (await second).status


@pytest.mark.parametrize("path", PATHS)
async def test_what_a_viewer_has_is_not_sent_again(path):
    scene = Scene(collected())
    tag = (await ask(scene, path)).headers["ETag"]
    again = await ask(scene, path, **{"If-None-Match": tag})

    assert (304, None, tag) == (again.status, again.body, again.headers["ETag"])


async def test_another_state_has_another_tag():
    scene = Scene(collected(), collected(leads=False))
    first = await ask(scene, "/live/state.json")
    scene.clock.seconds += 1
    second = await ask(scene, "/live/state.json", **{"If-None-Match": first.headers["ETag"]})

    assert (200, False) == (second.status, msgspec.json.decode(second.body)["leads"])


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_inline_and_nothing_from_other_places(path):
    """Each answer has the policy that keeps scripts of other places out, and is of the type that it says."""
    answer = await ask(Scene(collected()), path)

    assert set(HEADERS.items()) <= set(answer.headers.items())
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


async def test_the_page_has_no_script_or_style_within():
    """The policy would refuse them."""
    text = (await ask(Scene(collected()), "/live")).body.decode()

    assert 1 == text.count("<script") == text.count("></script>")
    assert "<style" not in text
    assert " style=" not in text
    assert "http" not in text


async def test_a_cluster_of_five_thousand_nodes_is_a_small_body():
    """Under 16 bytes a node each second, whatever the names, which are sent once."""
    body = (await ask(Scene(collected(n=5000)), "/live/state.json")).body

    assert len(body) < 16 * 5000


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_right_there_is_no_page(path):
    """The port's own review decides, on the path."""
    asked = []

    async def review(question):
        asked.append((question.verb, question.path))
        return Access(ANONYMOUS, allowed=False)

    async with (
        served(Scene(collected()).pages, review) as url,
        aiohttp.ClientSession() as client,
        client.get(f"{url}{path}", ssl=False) as answer,
    ):
        assert 403 == answer.status
    assert [("get", path)] == asked


def test_the_role_of_viewers_has_every_path():
    """ClusterRole berth-live-viewer of kustomize/base, whose patterns may end in a star; and explanations."""
    documents = yaml.safe_load_all((ROOT / "kustomize/base/user_roles.yaml").read_text(encoding="utf-8"))
    [role] = [each for each in documents if each["metadata"]["name"] == "berth-live-viewer"]
    page, explanations = role["rules"]

    assert [["get"]] * 2 == [rule["verbs"] for rule in role["rules"]]
    for path in Scene(collected()).pages:
        assert any(fnmatchcase(path, pattern) for pattern in page["nonResourceURLs"]), path
    assert ["podexplanations", "nodeexplanations"] == explanations["resources"]


@reports("live-state-unread", answer="the live page's `state.json`: 503, with the reason")
async def test_a_busy_loop_is_an_answer():
    """503, with the reason."""
    scene = Scene(collected())
    scene.failure = LoopBusyError("the current turn has taken 31.0 s")

    async with (
        served(scene.pages) as url,
        aiohttp.ClientSession() as client,
        client.get(f"{url}/live/state.json", ssl=False) as answer,
    ):
        assert (503, "the current turn has taken 31.0 s\n") == (answer.status, await answer.text())
