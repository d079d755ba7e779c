"""Pages of an SDK's reference, of what `go doc -all` prints and of the declarations that tsc writes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

_GO_SECTIONS = ("CONSTANTS", "VARIABLES", "FUNCTIONS", "TYPES")
_GO_NAME = re.compile(r"(?:func|type|const|var) (?:\((?:\w+ )?\*?(\w+)[^)]*\) )?(\w+)")
_GO_DOCUMENT = " " * 4
_MARKUP = re.compile(r"`[^`]*`|([\\*_<\[\]])")
_TS_DECLARATION = re.compile(
    r"(?:export )?(?:declare )?(?:abstract )?(?:class|function|interface|type|const|enum) (\w+)"
)
_TS_NAMES = re.compile(r'(export|import) (?:type )?(?:(\*)|\{([^}]*)\})(?: from "(\.[^"]+)")?;')
_TS_PARTS = re.compile(r"^(?=/\*\*|export |import |declare |interface |type )", re.MULTILINE)


@dataclass(slots=True)
class Declaration:
    """A declaration as its language writes it, its name, and what is said about it."""

    name: str
    code: list[str] = field(default_factory=list)
    document: list[str] = field(default_factory=list)

    def markdown(self, language: str) -> str:
        """The declaration as a part of a page."""
        heading = f"### {self.name}\n\n" if self.name else ""
        code = "\n".join(self.code).strip("\n")
        return f"{heading}```{language}\n{code}\n```\n\n{prose(self.document)}\n"


def go_page(printed: str) -> str:
    """The part of a page on a package, of what `go doc -all` prints."""
    head, *lines = printed.splitlines()
    name = head.split()[1]
    sections = _sections(lines)
    parts = [f"## {name}\n", prose(next(sections)[1])]
    for title, body in sections:
        parts += [f"{title.capitalize()}:\n", *(each.markdown("go") for each in _go_declarations(body))]
    return "\n".join(parts)


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each section with its title; that without one is what is said of the package."""
    title, body = "", list[str]()
    for line in lines:
        if line in _GO_SECTIONS:
            yield title, body
            title, body = line, []
        else:
            body.append(line)
    yield title, body


def _go_declarations(lines: list[str]) -> Iterator[Declaration]:
    """A declaration begins at the margin; what is said of it follows, indented by spaces."""
    found, open_ended = Declaration(""), False
    for line in lines:
        begins = bool(line) and not line[0].isspace() and not open_ended
        if begins and found.code:
            yield found
        if begins:
            match = _GO_NAME.match(line)
            found = Declaration(".".join(filter(None, match.groups())) if match else "")
        if begins or open_ended:
            found.code.append(line)
            open_ended = line.endswith(("{", "(")) if begins else line not in ("}", ")")
        else:
            found.document.append(line.removeprefix(_GO_DOCUMENT))
    if found.code:
        yield found


def typescript_page(module: str, entry: Path) -> str:
    """The part of a page on a module, of the declarations that its entry exports, in its order."""
    parts = [f"## {module}\n", prose(_comment(entry.read_text(encoding="utf-8").partition("*/")[0]))]
    return "\n".join((*parts, *(each.markdown("ts") for each in _exported(entry))))


def _exported(file: Path) -> Iterator[Declaration]:
    """What a file exports, under the names that it gives: its own, and what it takes from files beside it."""
    own, origins = _ts_declarations(file), dict[str, tuple[Path, str]]()
    for verb, everything, names, target in _TS_NAMES.findall(file.read_text(encoding="utf-8")):
        beside = file.parent / re.sub(r"\.[jt]s$", ".d.ts", target)
        if everything:
            yield from _exported(beside)
        for name, alias in re.findall(r"(?:type )?(\w+)(?: as (\w+))?", names):
            if verb == "import":
                origins[alias or name] = (beside, name)
                continue
            origin, first_name = (beside, name) if target else origins.get(name, (file, name))
            found = own if origin == file else {each.name: each for each in _exported(origin)}
            if first_name in found:
                yield replace(found[first_name], name=alias or name)
    yield from (each for each in own.values() if each.code[0].startswith("export "))


def _ts_declarations(file: Path) -> dict[str, Declaration]:
    """The declarations of a file by name, each with the comment before it."""
    found, comment = dict[str, Declaration](), ""
    for part in _TS_PARTS.split(file.read_text(encoding="utf-8")):
        if part.startswith("/**"):
            comment, _, rest = part.partition("*/")
            comment = "" if rest.strip() else comment
            continue
        if match := _TS_DECLARATION.match(part):
            # A constant and the type of its values have one name.
            made = found.setdefault(match[1], Declaration(match[1], document=_comment(comment)))
            made.code += part.strip().splitlines()
        comment = ""
    return found


def _comment(text: str) -> list[str]:
    lines = [re.sub(r"^\s*(?:/\*\*|\*) ?", "", line).rstrip() for line in text.splitlines()]
    return [line for line in lines if not line.startswith("@module")]


def prose(lines: list[str]) -> str:
    """A comment as Markdown: what is indented is code, and nothing else is markup."""
    made, code = list[str](), False
    for line in "\n".join(lines).strip("\n").splitlines():
        indented = line.startswith(("    ", "\t"))
        if indented and not code:
            made += ["", "```text"]
        if code and not indented and line.strip():
            made[-1:] = ["```", ""] if not made[-1] else [made[-1], "```", ""]
            code = False
        code = code or indented
        made.append(re.sub("^(?: {4}|\t)", "", line) if code else _MARKUP.sub(_escaped, line))
    return "\n".join((*made, "```" if code else "", ""))


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else found[0]
