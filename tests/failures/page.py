"""docs/failures.md: each way to fail and where it is reported, made from the tests that hold it.

`python -m tests.failures.page` writes the page.
"""

from pathlib import Path

from tests.failures.reporting import PLACES, marks
from tests.failures.rows import PARTS

PAGE = Path(__file__).parents[2] / "docs/failures.md"

HEAD = """\
# What fails, and where it is reported

Each row is a way in which a part can fail. Its other columns say where that can be seen, and the last one has
the tests that bring the failure about and find it reported there. The page is made from these tests
(`python -m tests.failures.page`); a test keeps it as this is, and fails for a row that no test holds, for a
quotation that is not in its test, and for a warning or error that is logged and that no row quotes.

*condition*: of the object that is named, `Pod` where none is. *event*: a Kubernetes Event of that object.
*metric*: at `/metrics`. *log*: a line of the process, which has the fields that are left out here.
*answer*: what a command prints, or a page or API call says.
"""


def page():
    """The page's text."""
    held = marks()
    lines = [HEAD]
    for part, rows in PARTS.items():
        lines += [f"## {part}", "", f"| failure | {' | '.join(PLACES)} | shown by |", f"|{'---|' * 7}"]
        lines += [_row(what, held.get(failure, [])) for failure, what in rows.items()]
        lines.append("")
    return "\n".join(lines)


def _row(what, held):
    cells = [what]
    for place in PLACES:
        texts = dict.fromkeys(mark.texts[place] for mark in held if place in mark.texts)
        cells.append("; ".join(texts))
    cells.append("<br>".join(map(_link, sorted(mark.test for mark in held))))
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text):
    return text.replace("|", "\\|")


def _link(test):
    path, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{path})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
