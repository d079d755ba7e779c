"""Templates give the objects that Go's text/template and decoder give."""

import pytest

from tests.scheduler_perf.errors import PerfError
from tests.scheduler_perf.templates import ObjectTemplate


def document(tmp_path, text, index=7, count=10):
    path = tmp_path / "object.yaml"
    path.write_text(text)
    return ObjectTemplate(path).document(index, count)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("{{.Index}}", 7),
        ("{{ .Count }}", 10),
        ("{{- .Index -}}", 7),
        ("{{Mod .Index 4}}", 3),
        ("{{ DivideInt .Index 2 }}", 3),
        ("{{ DivideFloat .Index 2 }}", 3.5),
        ("{{ MultiplyInt .Index .Count 2 }}", 140),
        ("{{ AddInt 1 (DivideInt 30000 .Count) }}", 3001),
        ("{{ SubtractInt .Index 10 }}", -3),
    ],
)
def test_actions(tmp_path, action, expected):
    """Names, numbers and functions of them, also of one another."""
    assert {"value": expected} == document(tmp_path, f"value: {action}")


def test_an_operations_own_parameters(tmp_path):
    """By name; text stays text."""
    path = tmp_path / "object.yaml"
    path.write_text("group: g-{{DivideInt .Index .podsPerGroup}}\ncpu: {{.cpu}}\npriority: {{.priority}}")
    template = ObjectTemplate(path, {"podsPerGroup": 4, "cpu": "100m", "priority": 1000})

    assert {"group": "g-1", "cpu": "100m", "priority": 1000} == template.document(7, 10)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: {{ printf .Index }}", "'printf' is not known: .Index, .Count, numbers, AddFloat"),
        ("a: {{ AddInt (Mod .Index 2 }}", "a parenthesis is not closed"),
        ("[1]", "holds no object"),
        ("a: [", "not YAML"),
    ],
)
def test_errors(tmp_path, text, words):
    """A file that is not understood is named."""
    with pytest.raises(PerfError) as raised:
        document(tmp_path, text)

    assert words in str(raised.value)
    assert "object.yaml" in str(raised.value)


def test_a_missing_file(tmp_path):
    """The tree is not whole."""
    with pytest.raises(PerfError, match=r"gone\.yaml: No such file .*: the tree lacks a file that it names"):
        ObjectTemplate(tmp_path / "gone.yaml")


def test_fields_in_any_case(tmp_path):
    """Go reads fields in any case; names that users choose stay as they are."""
    text = "Spec: {NodeTaintsPolicy: Honor}\nmetadata: {labels: {Team: A}}"

    assert {
        "spec": {"nodeTaintsPolicy": "Honor"},
        "metadata": {"labels": {"Team": "A"}},
    } == document(tmp_path, text)
