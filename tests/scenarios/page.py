"""docs/behaviour: the rules of kube-scheduler's behaviour and the scenarios that hold them, made from these.

`python -m tests.scenarios.page` writes the pages.
"""

from pathlib import Path

from tests.scenarios.chapters import CHAPTERS
from tests.scenarios.citations import CITATION, citations, order, rules

FOLDER = Path(__file__).parents[2] / "docs/behaviour"

INDEX = """\
# Behaviour

What Berth does as kube-scheduler v1.36 does it, rule by rule. Each rule has a scenario that runs the
scheduler's core in virtual time and fails if the rule is broken; `make test` runs all of them. The pages are
made from the scenarios (`python -m tests.scenarios.page`), and a test keeps them as these are.
A number never changes its rule.

What plugins decide (filters, scores, hints) and how a configuration is read is not listed here: vectors that
kube-scheduler's own program produced hold it (`python -m tests.golden`), and
[the two were run side by side](../beside-kube-scheduler.md).

"""


def pages():
    """Each page's text by its file name."""
    listed = {key: [] for key in CHAPTERS}
    for number, text in sorted(rules().items(), key=lambda rule: order(rule[0])):
        listed[number.split(".")[0]].append((number, text))
    cited = citations()
    made = {
        f"{chapter.page}.md": _page(key, chapter, listed[key], cited) for key, chapter in CHAPTERS.items()
    }
    head = ["| page | rules | upstream, below pkg/scheduler |", "|---|---|---|"]
    rows = [
        f"| [{chapter.title}]({chapter.page}.md) | {len(listed[key])} | {_files(chapter)} |"
        for key, chapter in CHAPTERS.items()
    ]
    return {"README.md": INDEX + "\n".join([*head, *rows]) + "\n", **made}


def _page(key, chapter, listed, cited):
    lines = [f"# {chapter.title}", ""]
    if chapter.sources:
        lines += [f"Source: {_files(chapter)} (Kubernetes v1.36, below pkg/scheduler).", ""]
    if not chapter.sections:
        lines += [*_table(listed, cited), ""]
    for section, title in enumerate(chapter.sections, 1):
        number = f"{key}.{section}"
        of_section = [rule for rule in listed if rule[0].split(".")[:2] == number.split(".")]
        lines += [f"## {number} {title}", "", *_table(of_section, cited), ""]
    return "\n".join(lines)


def _table(listed, cited):
    yield from ("| rule | what holds | shown by |", "|---|---|---|")
    for number, text in listed:
        yield f"| {number} | {_cell(text)} | {'<br>'.join(map(_link, cited[number]))} |"


def _files(chapter):
    return ", ".join(f"`{source}`" for source in chapter.sources)


def _link(test):
    path, _, name = test.partition("::")
    claim = name.removeprefix(CITATION.match(name)[0][:-1])
    return f"[{claim.replace('_', ' ')}](../../tests/scenarios/{path})"


def _cell(text):
    return text.replace("|", "\\|")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
