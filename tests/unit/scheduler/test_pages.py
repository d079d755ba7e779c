"""The pages for people: what the process was started with, how it is, and what it is doing."""

import json

import pytest
from aiohttp.test_utils import make_mocked_request

from berth.scheduler.component_pages import component_pages
from berth.scheduler.profiling import profiling_pages

FLAGS = {"secure-port": 10259, "leader-elect": True, "feature-gates": ("A=true", "B=false")}
KIND = "application/json;as={};v=v1beta1;g=config.k8s.io"


async def ask(pages, path, **headers):
    response = await pages[path.partition("?")[0]](make_mocked_request("GET", path, headers=headers))
    return response.status, response.text if response.text is not None else response.body.decode()


def component(enabled=lambda _: True):
    return component_pages(FLAGS, enabled)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("/flagz", ["secure-port=10259", "leader-elect=true", "feature-gates=A=true,B=false"]),
        ("/statusz", ["Up=0 s", "Emulation version=1.36"]),
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
    status, text = await ask(profiling_pages(), "/debug/pprof/goroutine")

    assert 200 == status
    assert "test_tasks_are_shown" in text


async def test_profile():
    """What the loop's thread does meanwhile, as long as is asked for."""
    status, text = await ask(profiling_pages(), "/debug/pprof/profile?seconds=0.01")
    refused, _ = await ask(profiling_pages(), "/debug/pprof/profile?seconds=soon")

    assert (200, 400) == (status, refused)
    assert "cumulative" in text
