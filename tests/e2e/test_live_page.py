"""The live page in a real browser: it paints, follows the keyboard, and takes what clusters name as text."""

import asyncio
import re

import pytest
from aiohttp import web

from berth.serving.errors import LoopBusyError
from tests.chromium import browser
from tests.failures.reporting import reports
from tests.unit.live_page.states import Scene, collected, served

pytestmark = pytest.mark.e2e

HOSTILE = '<img src=x onerror="window.taken=1"><script>window.taken=1</script>'
ROLES = {"button", "combobox", "searchbox", "checkbox", "application", "DisclosureTriangle", "region"}
CELLS = """(() => {
    const canvas = document.getElementById('cells');
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255)
        colours.add(data.slice(i, i + 3).join());
    return colours.size;
})()"""
COLOURS = """Object.fromEntries(['page', 'panel', 'text', 'quiet', 'link', 'good', 'bad', 'focus', 'series-1',
    'series-2', 'series-3', 'series-4'].map((name) =>
    [name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()]))"""


# What reaches over the window's edge, but for what scrolls within a box of its own.
WIDER = """[...document.body.querySelectorAll('*')].filter((element) => !element.closest('.hidden, .skip')
    && element.getBoundingClientRect().right > innerWidth + 1
    && !element.parentElement.closest('.scroll, svg')).map((element) => element.outerHTML.slice(0, 80))"""


def text_of(name):
    return f"document.getElementById('{name}').textContent"


async def explained(request):
    """A page beside the live one, as the scheduler has it."""
    asked = dict(request.match_info)
    if request.headers["Accept"] != "text/plain":
        return web.Response(status=406)
    return web.Response(text=f"pod {asked['namespace']}/{asked['name']}\nCause:  {HOSTILE}\n")


async def seen_in(open_page, url, *, dark):
    """What a reader of the page comes across who uses the keyboard."""
    page = await open_page(url, dark=dark)
    await page.until("document.querySelectorAll('#steps tbody th').length === 2")
    seen = {"cells": await page.value(CELLS), "colours": await page.value(COLOURS)}
    seen["images"] = await page.value("[document.images.length, document.scripts.length, window.taken ?? 0]")
    for name in ("role", "figures", "pods", "sidecars", "steps", "total", "lengths-text", "connection"):
        seen[name] = await page.value(text_of(name))
    seen["motion"] = await page.value(
        "getComputedStyle(document.querySelector('.bar span')).transitionDuration"
    )
    seen["wide"] = await page.value("document.documentElement.scrollWidth <= innerWidth")
    await page.value("document.getElementById('map').focus()")
    seen["spoken"] = [await pressed(page, *keys) for keys in KEYS]
    await page.value("document.getElementById('table').open = true")
    await page.until("document.querySelectorAll('#rows tbody tr').length === 50")
    await page.value(
        "(box => { box.value = '0058'; box.dispatchEvent(new Event('input')); })"
        "(document.getElementById('filter'))"
    )
    seen["row"] = await page.value("[...document.querySelectorAll('#rows tbody tr')].map((r) => r.innerText)")
    await page.value("document.querySelector('#pods button').click()")
    seen["explanation"] = await page.until("document.querySelector('dialog[open] pre')?.textContent")
    await page.value("document.getElementById('close').click()")
    tree = (await page.ask("Accessibility.getFullAXTree"))["nodes"]
    seen["names"] = [
        (node["role"]["value"], node["name"]["value"])
        for node in tree
        if not node["ignored"] and node["role"]["value"] in ROLES
    ]
    seen["complaints"] = list(page.complaints)
    return page, seen


KEYS = (("ArrowRight",), ("End",), ("ArrowUp",), ("PageUp",), ("Home",), ("ArrowLeft",), ("PageDown",))


async def pressed(page, *keys):
    before = await page.value(text_of("spoken"))
    await page.press(*keys)
    after = await page.value(text_of("spoken"))
    return after.partition(",")[0] if after != before else "same"


async def lost_and_found(page, scene):
    """What the page says while its scheduler is busy, and after it."""
    scene.failure = LoopBusyError("the current turn has taken 31.0 s")
    scene.clock.seconds += 1
    lost = await page.until(f"/^Lost/.test({text_of('connection')}) && {text_of('connection')}")
    scene.failure = None
    await page.until(f"{text_of('connection')} === 'Live'")
    return lost


async def grown(page, scene):
    """How many nodes the page has after the cluster's nodes became others."""
    scene.moments = [collected(n=80, version="two", leads=False)]
    scene.clock.seconds += 1
    await page.until(f"{text_of('role')} === 'standby'")
    return await page.value(text_of("extent"))


async def visit(folder):
    scene = Scene(collected(text=HOSTILE))
    pages = {
        **scene.pages,
        "/apis/explain.berth.dev/v1alpha1/namespaces/{namespace}/podexplanations/{name}": explained,
    }
    async with served(pages) as url, browser(folder) as open_page:
        _, dark = await seen_in(open_page, f"{url}/live", dark=True)
        narrow = await open_page(f"{url}/live", width=390, height=844)
        await narrow.until("document.querySelectorAll('#steps tbody th').length === 2")
        wider = await narrow.value(WIDER)
        page, light = await seen_in(open_page, f"{url}/live", dark=False)
        light["wider than a phone"] = wider
        light["lost"] = await lost_and_found(page, scene)
        light["grown"] = await grown(page, scene)
    return {"light": light, "dark": dark}


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """What was seen, light and dark, in one run of the browser."""
    return asyncio.run(visit(tmp_path_factory.mktemp("chromium")))


@pytest.fixture(params=["light", "dark"])
def seen(visits, request):
    return visits[request.param]


def test_no_complaints(seen):
    """No exception, no failed request, nothing that the content policy refused."""
    assert [] == seen["complaints"]


def test_nodes_are_painted(seen):
    """Sixty nodes with shares from 0 to 59 %, and more colours than a few."""
    assert seen["cells"] > 50


def test_figures(seen):
    assert "leader" == seen["role"]
    assert "nodes60" in seen["figures"]
    assert "Live" == seen["connection"]
    assert "cpu: 60 cores of 240 cores requested (25 %)" == seen["total"]
    assert "ready 299, backing off 299" in seen["lengths-text"]


def test_hostile_names_are_text(seen):
    """They stand there as they are, and become no elements."""
    assert [0, 1, 0] == seen["images"]
    for place in ("pods", "sidecars", "steps"):
        assert HOSTILE in seen[place]


def test_the_keyboard_moves_the_selection(seen):
    """First node, last, a row up, first of its group, first of all, no further, the next group.

    The groups stand in the order of their names: the hostile one, a and b.
    """
    first, last, up, group, home, left, down = seen["spoken"]

    assert ("node-0002", "node-0058") == (first, last)
    assert int(up.removeprefix("node-")) in range(4, 58, 3)
    assert ("node-0001", "node-0002", "same", "node-0000") == (group, home, left, down)


def test_a_table_has_the_same_figures(seen):
    [row] = seen["row"]

    assert ["node-0058", "b", "58 %", "150 %", "6 %", "not offered"] == row.split("\t")[:6]


def test_the_whole_explanation_is_fetched(seen):
    """The dialog has the page that the command prints, to the letter."""
    assert f"pod shop/{HOSTILE}\nCause:  {HOSTILE}\n" == seen["explanation"]


def test_every_control_has_a_name(seen):
    assert {"button", "combobox", "searchbox", "checkbox", "application"} <= {
        role for role, _ in seen["names"]
    }
    assert [] == [role for role, name in seen["names"] if not name]


def test_motion_is_left_out_where_the_reader_wants_none(seen):
    assert {"0s"} == set(seen["motion"].split(", "))


def test_the_page_is_no_wider_than_the_window(seen):
    assert seen["wide"]


def test_the_page_fits_a_phone(visits):
    """At 390 px nothing reaches over the edge but what scrolls within a box of its own."""
    assert [] == visits["light"]["wider than a phone"]


def test_contrast(seen):
    """Text 4.5:1 on its grounds, marks and lines 3:1, light and dark (WCAG 2.2 AA)."""
    colours = seen["colours"]
    for ground in ("page", "panel"):
        for name in ("text", "quiet", "link", "good", "bad"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for name in ("focus", "series-1", "series-2", "series-3", "series-4"):
            assert contrast(colours[name], colours[ground]) >= 3, (name, ground)


def test_dark_is_dark(visits):
    """The grounds are exchanged."""
    dark, light = (luminance(visits[scheme]["colours"]["page"]) for scheme in ("dark", "light"))

    assert dark < 0.05
    assert light > 0.8


@reports("live-state-unread", answer="the live page: `Lost: `, with the reason, while it goes on asking")
def test_a_busy_scheduler_is_said(visits):
    assert "Lost: the current turn has taken 31.0 s" == visits["light"]["lost"]


def test_new_nodes_are_followed(visits):
    assert re.fullmatch(r"1 to 1 of 1", visits["light"]["grown"])


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)
