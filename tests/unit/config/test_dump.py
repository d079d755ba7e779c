"""The effective configuration, written as v1."""

import pytest
import yaml

from berth.config import load
from berth.config.command_line import load_with_flags, parse_flags
from berth.config.dump import to_v1, to_yaml
from tests.unit.config.files import args_file, file, names, profile_file, shown

HEAD = """\
apiVersion: kubescheduler.config.k8s.io/v1
clientConnection:
  acceptContentTypes: ""
  burst: 100
  contentType: application/vnd.kubernetes.protobuf
  kubeconfig: kc.yaml
  qps: 7
enableContentionProfiling: true
enableProfiling: false
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
  leaseDuration: 15s
  renewDeadline: 10s
  resourceLock: leases
  resourceName: kube-scheduler
  resourceNamespace: kube-system
  retryPeriod: 2s
parallelism: 16
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
profiles:
- pluginConfig:
  - args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: DefaultPreemptionArgs
      minCandidateNodesAbsolute: 100
      minCandidateNodesPercentage: 10
    name: DefaultPreemption
"""


def dumped(text):
    return to_v1(load(text).configuration)


def test_defaults():
    """The defaults, changed by flags, are written in full with sorted keys."""
    options = parse_flags(
        ["--kubeconfig=kc.yaml", "--kube-api-qps=7", "--profiling=false", "--leader-elect=false"]
    )

    assert to_yaml(load_with_flags(options, None).configuration).startswith(HEAD)


def test_generated_args():
    """Every enabled plugin with arguments shows them, defaults included."""
    (profile,) = dumped(None)["profiles"]

    args = {entry["name"]: entry["args"] for entry in profile["pluginConfig"]}
    kinds = {name: plain.pop("kind") for name, plain in args.items()}
    assert {name: f"{name}Args" for name in kinds} == kinds
    assert ["kubescheduler.config.k8s.io/v1"] * 8 == [plain.pop("apiVersion") for plain in args.values()]
    resources = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    assert {
        "DefaultPreemption": {"minCandidateNodesAbsolute": 100, "minCandidateNodesPercentage": 10},
        "DynamicResources": {"bindingTimeout": "10m0s", "filterTimeout": "10s"},
        "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
        "NodeAffinity": {},
        "NodeResourcesBalancedAllocation": {"resources": resources},
        "NodeResourcesFit": {"scoringStrategy": {"resources": resources, "type": "LeastAllocated"}},
        "PodTopologySpread": {"defaultingType": "System"},
        "VolumeBinding": {"bindTimeoutSeconds": 600},
    } == args


def test_plugin_sets():
    """All fifteen sets are shown, multiPoint merged but not expanded, every entry with its weight."""
    (profile,) = dumped(
        profile_file(plugins={"score": {"enabled": names("ImageLocality"), "disabled": names("X")}})
    )["profiles"]

    plugins = profile["plugins"]
    assert 15 == len(plugins)
    assert {} == plugins["filter"]
    assert {
        "enabled": [{"name": "ImageLocality", "weight": 0}],
        "disabled": [{"name": "X", "weight": 0}],
    } == plugins["score"]
    assert {"name": "TaintToleration", "weight": 3} in plugins["multiPoint"]["enabled"]


def test_args_of_disabled_plugins():
    """Arguments of plugins that are not enabled are left out, raw ones of unknown plugins too."""
    text = profile_file(
        plugins={"multiPoint": {"disabled": names("VolumeBinding")}},
        pluginConfig=[{"name": "VolumeBinding", "args": {}}, {"name": "Missing", "args": {"a": 1}}],
    )

    (profile,) = dumped(text)["profiles"]
    assert not {"VolumeBinding", "Missing"} & {entry["name"] for entry in profile["pluginConfig"]}


def test_extenders():
    """An extender shows its timeout; resources it alone manages show up as ignored."""
    managed = {"name": "a.io/b", "ignoredByScheduler": True}
    found = dumped(file({"extenders": [{"managedResources": [managed], "tlsConfig": {"serverName": "s"}}]}))

    assert [
        {
            "urlPrefix": "",
            "httpTimeout": "5s",
            "managedResources": [managed],
            "tlsConfig": {"serverName": "s"},
        }
    ] == found["extenders"]
    fit = next(e for e in found["profiles"][0]["pluginConfig"] if e["name"] == "NodeResourcesFit")
    assert ["a.io/b"] == fit["args"]["ignoredResources"]


def test_optional_fields():
    """Some fields show only where they were set."""
    assert not {"delayCacheUntilActive", "extenders"} & dumped(file()).keys()
    assert dumped(file("delayCacheUntilActive: true"))["delayCacheUntilActive"]
    assert (
        0
        == dumped(file("profiles: [{percentageOfNodesToScore: 0}]"))["profiles"][0][
            "percentageOfNodesToScore"
        ]
    )


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]}
TERM = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["q", "1"]}]}


@pytest.mark.parametrize(
    "text",
    [
        file(),
        file("profiles: [{schedulerName: 'y'}, {schedulerName: '1e3'}, {schedulerName: '2030-12-31'}]"),
        file("profiles: [{schedulerName: 'a: b #c'}, {schedulerName: \"x\\ny\"}, {schedulerName: '12:30'}]"),
        file("clientConnection: {qps: 0.1, burst: 3, kubeconfig: '~'}\nleaderElection: {leaseDuration: 90s}"),
        profile_file(plugins={"score": {"disabled": names("*"), "enabled": names(("ImageLocality", 3))}}),
        args_file("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [SPREAD]}),
        args_file(
            "NodeAffinity",
            {
                "addedAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": TERM}]
                }
            },
        ),
        args_file(
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {
                        "shape": [{"utilization": 0, "score": 0}, {"utilization": 9}]
                    },
                }
            },
        ),
        file("extenders: [{enableHTTPS: true, tlsConfig: {keyData: aGk=}, weight: 3, ignorable: true}]"),
    ],
)
def test_round_trip(text):
    """What is written can be read, and means and writes the same."""
    first = load(text)
    written = to_yaml(first.configuration)

    second = load(written)
    assert list(map(shown, first.profiles)) == list(map(shown, second.profiles))
    assert [profile.args for profile in first.profiles] == [profile.args for profile in second.profiles]
    assert written == to_yaml(second.configuration)
    assert to_v1(first.configuration) == to_v1(second.configuration)


def test_other_readers():
    """Other YAML readers find the same texts."""
    text = file("profiles: [{schedulerName: 'on'}, {schedulerName: 'y'}, {schedulerName: '0o7'}]")

    found = yaml.safe_load(to_yaml(load(text).configuration))
    assert ["on", "y", "0o7"] == [profile["schedulerName"] for profile in found["profiles"]]
