"""What files of scheduler-plugins need to work here is said by their errors, and the page says the same."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli.config import config
from berth.config.catalogue import IN_TREE
from berth.config.scheduler_plugins import COUNTERPARTS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "from-scheduler-plugins.md"
UPSTREAMS, OURS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
WITH = sorted(name for name, found in COUNTERPARTS.items() if found.plugin)
WITHOUT = sorted(COUNTERPARTS.keys() - set(WITH))


def validated(tmp_path, text):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    return CliRunner().invoke(config, ["validate", str(file)])


def enabling(name):
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    return (
        head + f"profiles: [{{schedulerName: x, plugins: {{multiPoint: {{enabled: [{{name: {name}}}]}}}}}}]"
    )


def test_the_page_s_files(tmp_path):
    """Upstream's file is refused with the plugin that does it, and the one after the change is valid."""
    refused, valid = validated(tmp_path, UPSTREAMS), validated(tmp_path, OURS)

    assert 2 == refused.exit_code
    assert "Berth's out-of-tree plugin coscheduling does it" in refused.output
    assert "did you mean" not in refused.output
    assert (0, True) == (valid.exit_code, "scheduler-plugins-scheduler" in valid.output)


@pytest.mark.parametrize("name", WITH)
def test_counterparts(tmp_path, name):
    """The error of each name has the plugin, which there is, and the words of the page's row."""
    found = COUNTERPARTS[name]

    said = validated(tmp_path, enabling(name)).output

    assert f"{found.how})" in said
    assert f"write {found.plugin}" in said
    assert found.plugin in IN_TREE or (ROOT / "out-of-tree-plugins" / found.plugin / "README.md").exists()
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {name} |"))
    assert row.endswith(f"| {found.how} |")


@pytest.mark.parametrize("name", WITHOUT)
def test_what_has_no_counterpart(tmp_path, name):
    """Names that nothing here does are said to be such, and stand on the page."""
    said = validated(tmp_path, enabling(name)).output

    assert f"{name} is of scheduler-plugins, and none of Berth's plugins does it" in said
    assert re.search(rf"\b{name}\b", PAGE.read_text().split("## An example")[0])
