"""References: what a page says of a package's declarations, and what it says where a tool is missing."""

import pytest

from tests.release import references
from tests.release.declarations import go_page, prose, typescript_page
from tests.release.dist import ToolMissingError

GO = """\
package berth // import "example.com/berth"

Package berth makes plugins:

    berth.Main(plugin)

FUNCTIONS

func Main(plugin *Plugin, options ...Option)
    Main serves *plugin*
    until it ends.


TYPES

type Call struct {
	Profile string

	Key PodKey
}
    Call is a call.

func (c Call) String() string
    String gives its name.
"""
GO_PAGE = """\
## berth

Package berth makes plugins:


```text
berth.Main(plugin)
```

Functions:

### Main

```go
func Main(plugin *Plugin, options ...Option)
```

Main serves \\*plugin\\*
until it ends.


Types:

### Call

```go
type Call struct {
	Profile string

	Key PodKey
}
```

Call is a call.


### Call.String

```go
func (c Call) String() string
```

String gives its name.
"""


def squeezed(text):
    """A text without lines that are empty."""
    return [line for line in text.splitlines() if line]


def test_a_page_of_go():
    """Every declaration with its name, as Go prints it, and what is said of it."""
    assert squeezed(GO_PAGE) == squeezed(go_page(GO))


INDEX = """\
/**
 * The SDK.
 *
 * @module
 */
export { type Call, serve } from "./serving.js";
export * from "./words.js";
"""
SERVING = """\
import { Code } from "./generated/common.js";
/** A file's own comment. */
import type { Other } from "./other.js";
/** A call. */
export interface Call {
    /** Its outcome. */
    readonly code: Code;
}
export interface Hidden {
}
/**
 * Serve a plugin.
 */
export declare function serve(name: string): Promise<void>;
"""
WORDS = """\
/** The words. */
import { ActionType } from "./generated/common.js";
export { ActionType as Action };
/** A reason. */
export type Reason = string;
"""
COMMON = """\
/** What happened. */
export declare const ActionType: {
    readonly ADD: 1;
};
export type ActionType = (typeof ActionType)[keyof typeof ActionType];
"""


@pytest.fixture
def page(tmp_path):
    """The page of a module of three files."""
    (tmp_path / "generated").mkdir()
    for name, text in {
        "index": INDEX,
        "serving": SERVING,
        "words": WORDS,
        "generated/common": COMMON,
    }.items():
        (tmp_path / f"{name}.d.ts").write_text(text)
    return typescript_page("@berth/sdk", tmp_path / "index.d.ts")


def test_a_page_of_typescript_has_what_the_module_exports(page):
    """In the module's order, under the names that it gives, and nothing besides."""
    assert ["## @berth/sdk", "### Call", "### serve", "### Action", "### Reason"] == [
        line for line in page.splitlines() if line.startswith("#")
    ]


def test_a_page_of_typescript_has_comments_and_code(page):
    """A comment belongs to the declaration that follows it, and a file's own to none."""
    found = squeezed(page)

    assert "The SDK." == found[1]
    assert ["A call.", "Serve a plugin.", "What happened.", "A reason."] == [
        found[i + 1]
        for i, line in enumerate(found[:-1])
        if line == "```" and not found[i + 1].startswith("#")
    ]
    assert "    /** Its outcome. */" in found
    assert "export type ActionType = (typeof ActionType)[keyof typeof ActionType];" in found


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a map[string]*Node", r"a map\[string\]\*Node"),
        ("keep `a_b[0]` as it is", "keep `a_b[0]` as it is"),
        ("a `tick alone_", r"a `tick alone\_"),
    ],
)
def test_a_comment_is_no_markup(line, shown):
    """What Markdown would take for markup is shown as it is, but for code between ticks."""
    assert f"{shown}\n" == prose([line]).lstrip("\n")[: len(shown) + 1]


def test_a_tool_that_is_missing_is_named_on_the_page(tmp_path, monkeypatch, capsys):
    """The page and a line on stderr name it; the other pages are made."""

    def missing(_folder):
        raise ToolMissingError("cargo is not on this machine")

    made = {"rust": ("Rust", missing), "go": ("Go", lambda _folder: "text\n")}
    monkeypatch.setattr(references, "REFERENCES", made)

    references.write(tmp_path)

    assert "cargo is not on this machine" in (tmp_path / "plugin-sdk/rust/reference.md").read_text()
    assert "No reference of the Rust SDK: cargo is not on this machine\n" == capsys.readouterr().err
    assert "# Go reference\n\ntext\n" == (tmp_path / "plugin-sdk/go/reference.md").read_text()
