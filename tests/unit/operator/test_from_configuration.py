"""`berth config to-crd`: an existing configuration as resources."""

import pytest
import yaml
from click.testing import CliRunner

from berth.cli.kubectl import kubectl_berth
from berth.cli.main import main
from berth.operator.rendering import SchedulerDefaults, plan
from tests.unit.operator import kit

FILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/k, qps: 20}
leaderElection: {leaderElect: true, resourceName: mine, leaseDuration: 30s}
enableProfiling: true
podMaxBackoffSeconds: 20
profiles:
- schedulerName: packing
  plugins: {score: {enabled: [{name: gpu-share, weight: 3}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
---
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins:
- name: gpu-share
  address: unix:/run/x/gpu.sock
  timeout: 200ms
  exemptPods: {namespaces: [x]}
  shadow: true
  args: {policy: packing}
- name: far
  address: far.team:50051
  extensionPoints: [score]
  profiles: [packing]
  weight: 7
  tls: {caFile: /ca, certFile: /cert, keyFile: /key}
"""


SHARDS = """\
---
apiVersion: berth.dev/v1alpha1
kind: ShardList
shards:
- {name: all, profiles: [packing]}
"""


@pytest.fixture
def convert(tmp_path):
    """Run the command on a file; gives its result."""

    def run(*arguments, text=FILE):
        file = tmp_path / "scheduler.yaml"
        file.write_text(text)
        return CliRunner().invoke(main, ["config", "to-crd", str(file), *arguments])

    return run


def test_converted(convert):
    """What the file says is in the resources, and they are valid."""
    result = convert("--image", "gpu-share=berth/gpu-share:1", "--name", "old")
    assert 0 == result.exit_code, result.output
    documents = list(yaml.safe_load_all(result.stdout))

    api = kit.serving()
    for one in documents:
        path = kit.SCHEDULERS if one["kind"] == "Scheduler" else kit.PLUGINS
        status, answer = api.post(path, one, fieldValidation="Strict")
        assert 201 == status, answer
    spec = documents[0]["spec"]
    assert ("old", 20, 20) == (
        documents[0]["metadata"]["name"],
        spec["clientConnection"]["qps"],
        spec["podMaxBackoffSeconds"],
    )
    assert {"leaderElect": True, "resourceName": "mine", "leaseDuration": "30s"} == spec["leaderElection"]
    assert ["berth/gpu-share:1", None] == [one["spec"].get("image") for one in documents[1:]]
    assert {"policy": "packing"} == documents[1]["spec"]["arguments"]
    assert (["packing"], 7) == (documents[2]["spec"]["profiles"], documents[2]["spec"]["weight"])
    assert [True, None] == [one["spec"].get("shadow") for one in documents[1:]]


def test_there_and_back(convert):
    """The operator makes of the resources the profiles that the file had, with what the plugin list adds."""
    scheduler, *plugins = yaml.safe_load_all(convert("--image", "gpu-share=x").stdout)
    scheduler["metadata"] |= {"namespace": "n", "uid": "u"}
    found = {one["metadata"]["name"]: one for one in plugins}
    found["far"]["spec"]["address"] = "localhost:50051"  # over a network it takes certificates
    made = yaml.safe_load(plan(scheduler, found, SchedulerDefaults("i")).configuration.scheduler_yaml)

    (expected,) = next(yaml.safe_load_all(FILE))["profiles"]
    expected["plugins"]["multiPoint"] = {"enabled": [{"name": "far", "weight": 7}]}
    assert [expected] == made["profiles"]


def test_left_out(convert):
    """What has no place is said."""
    stderr = convert("--image", "gpu-share=x").stderr

    assert "clientConnection.kubeconfig is left out" in stderr
    assert "enableProfiling is left out" in stderr
    assert "plugins far: tls: create the Secret berth-plugin-far-tls" in stderr


def test_gates(convert):
    """Feature gates are taken along."""
    documents = list(
        yaml.safe_load_all(
            convert("--image", "gpu-share=x", "--feature-gates", "GenericWorkload=true").stdout
        )
    )

    assert {"GenericWorkload": True} == documents[0]["spec"]["featureGates"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(FILE, "give --image gpu-share=IMAGE", id="no image"),
        pytest.param(
            FILE.replace("packing\n", "packing\n  nonsense: 1\n", 1), "unknown field", id="not valid"
        ),
        pytest.param(
            FILE + SHARDS,
            "ShardList: shards: a Scheduler has no such field; remove the ShardList",
            id="shards",
        ),
    ],
)
def test_refused(convert, text, words):
    """What cannot be converted is refused with what to do."""
    result = convert(text=text)

    assert 2 == result.exit_code
    assert words in result.stderr


def test_kubectl(monkeypatch, capsys):
    """Under kubectl's name it is the same program."""
    monkeypatch.setattr("sys.argv", ["kubectl-berth", "--help"])
    with pytest.raises(SystemExit):
        kubectl_berth()

    shown = capsys.readouterr().out
    assert "kubectl berth" in shown
    assert "explain" in shown
