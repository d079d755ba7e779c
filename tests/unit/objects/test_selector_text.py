import pytest

from berth.objects.selector_text import (
    SelectorError,
    match_label_selector,
    parse_field_selector,
    parse_label_selector,
)


def holds(selector, labels):
    return all(test(labels) for test in parse_label_selector(selector))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("missing!=web", True),
        ("app in (web, db)", True),
        ("app notin (web,db)", False),
        ("missing notin (web)", True),
        ("missing in (web)", False),
        ("app", True),
        ("!app", False),
        ("!missing", True),
        ("rank>1", True),
        ("rank<1", False),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("example.com/x=", True),
    ],
)
def test_label_selector(selector, expected):
    """Each operator holds as kubectl documents it."""
    labels = {"app": "web", "tier": "front", "rank": "2", "example.com/x": ""}

    assert expected is holds(selector, labels)


@pytest.mark.parametrize("selector", ["a b", "=x", "a in x", "rank>x"])
def test_malformed_label_selector(selector):
    """What cannot be parsed is refused."""
    with pytest.raises(SelectorError):
        parse_label_selector(selector)


def test_field_selector():
    """Field requirements keep field, value and sense."""
    parsed = parse_field_selector("spec.nodeName=,status.phase!=Failed,metadata.name==a")

    assert [
        ("spec.nodeName", "", True),
        ("status.phase", "Failed", False),
        ("metadata.name", "a", True),
    ] == parsed


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selector_object(selector, expected):
    """A selector object holds as upstream's does; none at all matches nothing."""
    assert expected is match_label_selector(selector, {"app": "web"})
