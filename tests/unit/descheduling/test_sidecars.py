"""A plan asks no sidecar: a configuration with one is refused, and it is said what to give in its place."""

import json

from click.testing import CliRunner

from berth.commands.deschedule import deschedule
from tests.unit.simulation.kit import node, pod, profiles, written

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles: [{name: default, plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}}]
"""


def planned(folder, configuration):
    (folder / "policy.yaml").write_text(POLICY)
    there = written(folder / "cluster.json", node("n0"), pod("p"))
    arguments = [str(there), "--policy", str(folder / "policy.yaml"), "--config", str(configuration)]
    return CliRunner().invoke(deschedule, arguments)


def test_a_profile_with_a_sidecar_is_refused(tmp_path):
    """The error has the file, the entry and the remedy; a file without the plugin is a plan's."""
    profile = {"schedulerName": "default-scheduler"}
    enabled = {**profile, "plugins": {"multiPoint": {"enabled": [{"name": "shares"}]}}}
    entry = {"name": "shares", "address": "unix:/run/shares.sock"}
    listed = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": [entry]}
    both = tmp_path / "both.yaml"
    both.write_text(f"# a scheduler\n{json.dumps(profiles(enabled))}\n---\n{json.dumps(listed)}\n")
    alone = written(tmp_path / "alone.yaml", profiles(profile))

    refused, without = planned(tmp_path, both), planned(tmp_path, alone)

    assert (2, 0) == (refused.exit_code, without.exit_code)
    assert f"{both}: plugins[0]: plugin shares: no sidecar is asked here" in refused.stderr
    assert "give a --config that names shares neither in a profile nor in a list of plugins" in refused.stderr
