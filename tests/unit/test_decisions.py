"""Sizes that decisions name are those of the code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "core/scheduler/src/berth/client"
OPERATOR = ROOT / "core/operator/src/berth/operator"


def lines(files):
    """How many lines they have together."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


@pytest.mark.parametrize(
    ("decision", "files"),
    [
        pytest.param(
            "0002-http-engine",
            [CLIENT / "transport.py", *(CLIENT / "connections").glob("*.py")],
            id="the client's connections",
        ),
        pytest.param(
            "0003-sandbox-http-engine",
            [ROOT / "core/sandbox/src/berth/sandbox/http.py"],
            id="the sandbox's server",
        ),
        pytest.param(
            "0010-own-operator",
            [file for file in OPERATOR.rglob("*.py") if "definitions" not in file.parts],
            id="the operator",
        ),
        pytest.param("0041-cel", [*(CLIENT.parent / "cel").glob("*.py")], id="CEL"),
    ],
)
def test_a_size_that_a_decision_names_is_that_of_the_code(decision, files):
    """A decision against a library names what is kept here instead, within a tenth."""
    text = (ROOT / f"docs/decisions/{decision}.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"(?:some|about) ([0-9,]+) lines", text)

    assert int(named.replace(",", "")) == pytest.approx(lines(files), rel=0.1)
