"""The links among the pages of this repository: where each leads, and which lead nowhere."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.go_toolchain import ROOT

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s]+)(\))")
_HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
_SCHEME = re.compile(r"^[a-z][a-z+.-]*:")


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a page to another place of this repository."""

    page: Path
    line: int
    text: str

    @property
    def target(self) -> Path:
        """The file or folder that it names."""
        path = self.text.partition("#")[0]
        return (self.page.parent / path).resolve() if path else self.page

    @property
    def anchor(self) -> str:
        """The heading that it names; empty where it names none."""
        return self.text.partition("#")[2]

    @property
    def broken(self) -> str:
        """What is wrong with it; empty where nothing is."""
        where = f"{self.page.relative_to(ROOT)}:{self.line}: {self.text}"
        if not self.target.is_relative_to(ROOT):
            return f"{where} leads out of the repository"
        if not self.target.exists():
            return f"{where} leads nowhere"
        page = page_of(self.target)
        if self.anchor and (page is None or self.anchor not in anchors(page)):
            return f"{where}: no heading is called that"
        return ""


def pages() -> list[Path]:
    """Every page of Markdown that git knows, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted(ROOT / name for name in found if name and (ROOT / name).is_file())


def links(page: Path) -> Iterator[Link]:
    """The links of a page to other places of this repository, those in code left out."""
    text = without_code(page.read_text(encoding="utf-8"))
    for found in LINK.finditer(text):
        if not _SCHEME.match(found[2]):
            yield Link(page, text.count("\n", 0, found.start()) + 1, found[2])


def without_code(text: str) -> str:
    """The text with code replaced by blanks, line for line and column for column."""
    for pattern in (_FENCED, _CODE):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def page_of(target: Path) -> Path | None:
    """The page that a reader sees there: the file itself, or a folder's README.md."""
    if target.is_dir():
        target /= "README.md"
    return target if target.suffix == ".md" and target.is_file() else None


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of the page's headings, as GitHub makes them."""
    fenced = _FENCED.sub("", page.read_text(encoding="utf-8"))
    seen: dict[str, int] = {}
    for heading in _HEADING.findall(fenced):
        name = anchor(heading)
        seen[name] = seen.get(name, 0) + 1
    return frozenset(name if i == 0 else f"{name}-{i}" for name, times in seen.items() for i in range(times))


def anchor(heading: str) -> str:
    """The name of a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
