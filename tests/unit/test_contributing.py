"""What CONTRIBUTING.md says to do works."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_first_test():
    """The test that the page shows is complete and passes."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names = {}
    exec(source, names)  # our own page

    names["test_mine"]()


def test_the_makefile_has_what_the_page_names():
    """Every `make` target that the page names is one of the Makefile."""
    commands = re.findall(r"(?:^|`|&& )make ([a-z -]+)", PAGE, flags=re.MULTILINE)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))

    named = {word for words in commands for word in words.split()}
    assert {"lint", "test", "proto"} <= named <= targets
