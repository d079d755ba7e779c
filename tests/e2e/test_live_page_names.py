"""The live page in a real browser with names that are long, turn the direction of writing, or are markup."""

import asyncio

import msgspec
import pytest
from aiohttp import web

from berth.live_page.collecting import Collected
from berth.live_page.node_map import MappedNodes
from tests.chromium import browser
from tests.e2e.test_live_page import WIDER
from tests.unit.live_page.states import Scene, collected, served

pytestmark = pytest.mark.e2e

NAMES = {
    "253 letters": "x" * 253,
    "253 letters and dots": ".".join(["abcdefghij"] * 23),
    "markup": "<script>window.taken=1</script><svg onload=window.taken=1>",
    "an attribute": "\" onfocus=window.taken=1 autofocus x='",
    "an address": "javascript:window.taken=1//" + "x" * 100,
    "turned by a control": "\u202egpj.exe\u202c \u2066\u2067abc",
    "right to left": "שלום-עולם-" * 25,
    "an emoji of seven": "👩\u200d👩\u200d👧\u200d👦" * 20,
    "marks upon marks": "e" + "\u0301\u0489" * 40,
    "lines and tabs": "a\nb\tc\r\n" * 20,
    "no letters": "\u200b\ufeff\u00ad",
}
WIDTHS = (390, 1280)
# Boxes whose contents stick out of them over their neighbours.
SPILLED = """[...document.body.querySelectorAll('*')].filter((element) => {
    const { display, overflowX } = getComputedStyle(element);
    return !element.closest('.hidden, .skip, svg, select, canvas') && overflowX === 'visible'
      && !['inline', 'contents', 'none'].includes(display) && element.scrollWidth > element.clientWidth + 1
      && element.clientWidth > 0;
}).map((element) => `${element.scrollWidth} in ${element.clientWidth}: ${element.outerHTML.slice(0, 90)}`)"""
TAKEN = """[window.taken ?? 0, document.scripts.length, document.images.length,
    document.querySelectorAll('[onfocus], svg[onload]').length]"""
CONTROLS = (
    "/[\\p{Cf}\\p{Co}\\u0000-\\u0009\\u000b-\\u001f]/u.test(document.body.innerText.replaceAll('\\t', ''))"
)


def moment(text):
    """A moment in which the text is every name: of nodes, zones, resources, pods, plugins and steps."""
    base = collected(text=text)
    resources = [
        msgspec.structs.replace(each, name=f"{text}/{each.name}{text}" if "/" in each.name else each.name)
        for each in base.state.resources
    ]
    attempts = [msgspec.structs.replace(each, profile=text, node=text) for each in base.state.attempts]
    nodes = msgspec.json.decode(base.nodes, type=MappedNodes)
    names = [f"{i:02}{text}" for i in range(len(nodes.names))]
    state = msgspec.structs.replace(base.state, resources=resources, attempts=attempts)
    return Collected(state, msgspec.json.encode(msgspec.structs.replace(nodes, names=names)))


async def look(page):
    """What sticks out, and what was taken for markup, with all of the page open."""
    await page.until("document.querySelectorAll('#steps tbody th').length === 2")
    await page.value("document.getElementById('map').focus()")
    await page.press("ArrowRight")
    await page.value("document.getElementById('table').open = true")
    await page.until("document.querySelectorAll('#rows tbody tr').length === 50")
    seen = {"wider": await page.value(WIDER), "spilled": await page.value(SPILLED)}
    await page.value("document.querySelector('#pods button').click()")
    await page.until("document.querySelector('dialog[open] pre')?.textContent")
    seen["dialog"] = await page.value(f"[...{WIDER}, ...{SPILLED}]")
    seen["taken"] = await page.value(TAKEN)
    seen["controls"] = await page.value(CONTROLS)
    seen["complaints"] = list(page.complaints)
    return seen


async def visit(folder):
    seen = {}

    async def explained(request):
        name = request.match_info["name"]
        return web.Response(text=f"pod shop/{name}\nCause:  {name}\n")

    async with browser(folder) as open_page:
        for name, text in NAMES.items():
            pages = Scene(moment(text)).pages
            where = "/apis/explain.berth.dev/v1alpha1/namespaces/{namespace}/podexplanations/{name}"
            async with served({**pages, where: explained}) as url:
                for width in WIDTHS:
                    page = await open_page(f"{url}/live", width=width, height=900)
                    seen[name, width] = await look(page)
    return seen


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """What was seen of each name, in one run of the browser."""
    return asyncio.run(visit(tmp_path_factory.mktemp("chromium")))


@pytest.fixture(params=[(name, width) for name in NAMES for width in WIDTHS], ids=str)
def seen(visits, request):
    return visits[request.param]


def test_nothing_sticks_out(seen):
    """No box is wider than the window, and no text reaches over its neighbour."""
    assert ([], [], []) == (seen["wider"], seen["spilled"], seen["dialog"])


def test_nothing_is_taken_for_markup(seen):
    """One script, the page's own; no picture, no handler, nothing that the content policy had to refuse."""
    assert ([0, 1, 0, 0], []) == (seen["taken"], seen["complaints"])


def test_no_control_character_is_left(seen):
    """What hides, or turns the direction of writing, stands there as JSON writes it."""
    assert not seen["controls"]
