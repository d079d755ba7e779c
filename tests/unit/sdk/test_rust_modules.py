"""The modules of the Rust SDK import down only."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

from tests.rust_toolchain import RUST_SDK

USE = re.compile(r"\bcrate::(\w+)::")


def imports(path: Path) -> set[str]:
    """The modules that a file's code names, its own tests and comments left out."""
    text, _, _ = path.read_text().partition("#[cfg(test)]")
    return set(USE.findall(re.sub(r"//.*", "", text))) - {"pb", path.stem}


def test_modules_do_not_import_each_other_in_circles():
    """What `lib.rs` declares can be put into one order; a circle is named by the error."""
    modules = {path.stem: imports(path) for path in (RUST_SDK / "src").glob("*.rs")}
    del modules["lib"]

    assert set(modules) <= set(TopologicalSorter(modules).static_order())
