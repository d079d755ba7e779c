"""Every link among the pages of this repository leads somewhere."""

import pytest

from tests.go_toolchain import ROOT
from tests.release.links import Link, anchor, links, pages
from tests.release.site import REFERENCES, SOURCE, rewritten, write


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Each link of the page names a file, a folder or a heading that is there."""
    assert [] == [link.broken for link in links(page) if link.broken]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("README.md", ""),
        ("docs", ""),
        ("no-such-page.md", "leads nowhere"),
        ("../another.md", "leads out of the repository"),
        ("README.md#no-such-heading", "no heading is called that"),
    ],
)
def test_what_is_wrong_with_a_link(text, complaint):
    """A link that leads nowhere is named with what is wrong."""
    broken = Link(ROOT / "README.md", 1, text).broken

    assert broken.endswith(complaint)
    assert bool(complaint) == bool(broken)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("What it is made of", "what-it-is-made-of"),
        ("`berth explain`, and why", "berth-explain-and-why"),
        ("ttrpc, beside gRPC", "ttrpc-beside-grpc"),
        ("The [page](a.md) of it", "the-page-of-it"),
    ],
)
def test_names_of_headings(heading, name):
    """A heading has the name that GitHub gives it."""
    assert name == anchor(heading)


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("proto/berth/plugin/v1", f"{SOURCE}/proto/berth/plugin/v1"),
        ("plugin-sdk/python", "plugin-sdk/python/README.md"),
        ("docs/architecture.md#the-way-of-a-pod", "docs/architecture.md#the-way-of-a-pod"),
        ("https://example.com/a", "https://example.com/a"),
        ("docs/images/live-page-light.png", "docs/images/live-page-light.png"),
    ],
)
def test_links_of_the_sites_pages(link, shown):
    """On the site a link to sources leads to the repository, one to a page stays on the site."""
    assert f"See [it]({shown})." == rewritten(ROOT / "README.md", f"See [it]({link}).")


def test_the_site_has_every_page(tmp_path):
    """Each page of the repository is a page of the site, and the SDK's reference is one more."""
    write(tmp_path)

    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")}
    assert {str(page.relative_to(ROOT)) for page in pages()} | set(REFERENCES) == made


def test_the_site_has_every_picture(tmp_path):
    """Those of the pages' folder, byte for byte."""
    write(tmp_path)

    for picture in (ROOT / "docs/images").iterdir():
        assert picture.read_bytes() == (tmp_path / "docs/images" / picture.name).read_bytes()
