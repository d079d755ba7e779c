"""Expressions of dashboards' panels as the tool of their pictures asks Prometheus for them."""

import pytest

from tests.dashboards.queries import legend, replaced, values_of
from tests.e2e.promql import dashboards

VALUES = {"job": ".*", "job_name": "a", "__rate_interval": "4s"}


@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        ('up{job=~"$job"}', 'up{job=~".*"}'),
        ("rate(x[$__rate_interval])", "rate(x[4s])"),
        ('x{a="$job_name", b="${job}"}', 'x{a="a", b=".*"}'),
        ('x{a=~"^b$"}', 'x{a=~"^b$"}'),
    ],
)
def test_variables_are_replaced(expression, asked):
    assert asked == replaced(expression, VALUES)


def test_a_variable_without_a_value_is_an_error():
    with pytest.raises(KeyError, match="range"):
        replaced("x[$range]", VALUES)


def test_labels_stand_in_the_legend():
    assert "a c" == legend("{{one}} {{two}} {{ three }}", {"one": "a", "three": "c"})


@pytest.mark.parametrize("name", ["plugins", "scheduler"])
def test_every_variable_of_a_dashboard_has_a_value(name):
    dashboard = dashboards()[name]
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]

    assert panels
    assert not any("$" in replaced(expression, values_of(dashboard)) for expression in panels)
