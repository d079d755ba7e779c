"""The pages for people: what the process was started with, how it is, and what it is doing."""

import asyncio
import json
import threading

import pytest
from aiohttp.test_utils import make_mocked_request

from berth.config.releases.release import effective
from berth.serving.component_pages import component_pages
from berth.serving.profiling import profiling_pages


def profiled():
    return profiling_pages(asyncio.get_running_loop(), threading.get_ident())


FLAGS = {"secure-port": 10259, "leader-elect": True, "feature-gates": ("A=true", "B=false")}
KIND = "application/json;as={};v=v1beta1;g=config.k8s.io"


async def ask(pages, path, **headers):
    response = await pages[path.partition("?")[0]](make_mocked_request("GET", path, headers=headers))
    return response.status, response.text if response.text is not None else response.body.decode()


def component(enabled=lambda _: True):
    return component_pages(FLAGS, enabled, effective((1, 37), (1, 36)))


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("/flagz", ["secure-port=10259", "leader-elect=true", "feature-gates=A=true,B=false"]),
        ("/statusz", ["Up=0 s", "Emulation version=1.36", "Followed release=1.37"]),
    ],
)
async def test_text_for_people(path, lines):
    """By default a page is lines of names and values."""
    status, text = await ask(component(), path)

    assert 200 == status
    assert set(lines) <= set(text.splitlines())


@pytest.mark.parametrize(
    ("path", "kind", "field"), [("/flagz", "Flagz", "flags"), ("/statusz", "Statusz", "uptimeSeconds")]
)
async def test_json_by_its_kind(path, kind, field):
    """Who asks for the kind gets it as JSON; JSON without a kind is not acceptable."""
    status, body = await ask(component(), path, Accept=KIND.format(kind))
    refused, _ = await ask(component(), path, Accept="application/json")

    document = json.loads(body)
    assert (200, kind, "config.k8s.io/v1beta1") == (status, document["kind"], document["apiVersion"])
    assert field in document
    assert 406 == refused


def test_gates():
    """Each page is there only if its gate is on."""
    assert ["/statusz"] == list(component(lambda gate: gate == "ComponentStatusz"))


async def test_tasks_are_shown():
    """The stacks of all tasks, this test's among them."""
    status, text = await ask(profiled(), "/debug/pprof/goroutine")

    assert 200 == status
    assert "test_tasks_are_shown" in text


async def test_profile():
    """What the loop's thread does meanwhile, as long as is asked for."""
    status, text = await ask(profiled(), "/debug/pprof/profile?seconds=0.01")

    assert 200 == status
    assert "cumulative" in text


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan"])
async def test_profile_of_no_time(seconds):
    """Seconds are a number above nought."""
    assert 400 == (await ask(profiled(), f"/debug/pprof/profile?seconds={seconds}"))[0]


async def test_one_profile_at_a_time():
    """A second profile is refused as kube-scheduler refuses it, and one after the first is taken."""
    pages = profiled()
    first = asyncio.create_task(ask(pages, "/debug/pprof/profile?seconds=300"))
    await asyncio.sleep(0)
    busy = await ask(pages, "/debug/pprof/profile?seconds=0.01")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    again, _ = await ask(pages, "/debug/pprof/profile?seconds=0.01")

    assert (500, "Could not enable CPU profiling: it is in use already\n") == busy
    assert 200 == again
