"""The pages of the documentation's site: those of this repository, with links that work there.

`python -m tests.release.site FOLDER` writes them; mkdocs makes the site of them (docs/mkdocs.yml).
"""

import os
import re
import shutil
import sys
from pathlib import Path

from tests.go_toolchain import ROOT
from tests.release.links import LINK, Link, page_of, pages, without_code

REFERENCES = {
    "plugin-sdk/python/reference.md": "# berth_sdk\n\n::: berth_sdk\n\n::: berth_sdk.testing\n",
}
"""Pages that the site alone has: what stands there is put in from docstrings."""
SOURCE = "https://github.com/berth-scheduler/berth/tree/main"


def write(folder: Path) -> None:
    """Write every page and picture; a link to anything else leads to the repository's own site."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in pages():
        target = folder / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rewritten(page, page.read_text(encoding="utf-8")), encoding="utf-8")
    for picture in sorted((ROOT / "docs/images").iterdir()):
        (folder / "docs/images").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, folder / "docs/images" / picture.name)
    for name, text in REFERENCES.items():
        (folder / name).write_text(text, encoding="utf-8")


def rewritten(page: Path, text: str) -> str:
    """The text of a page with links as the site has them."""
    made, end = [], 0
    for found in LINK.finditer(without_code(text)):
        link = Link(page, 0, found[2])
        if re.match(r"[a-z][a-z+.-]*:", found[2]) or link.target == page:
            continue
        made += [text[end : found.start(2)], _address(link)]
        end = found.end(2)
    return "".join((*made, text[end:]))


def _address(link: Link) -> str:
    shown = page_of(link.target)
    if link.target.parent == ROOT / "docs/images":
        shown = link.target
    if shown is None:
        return f"{SOURCE}/{link.target.relative_to(ROOT)}"
    path = os.path.relpath(shown, link.page.parent)
    return f"{path}#{link.anchor}" if link.anchor else path


if __name__ == "__main__":
    write(Path(sys.argv[1]))
