"""A policy is read as the descheduler writes it, and what is not followed is refused by its field."""

import json
import re
from pathlib import Path

import pytest

from berth.config.descheduling.policy import KIND
from berth.config.descheduling.policy_file import MAX_BYTES, read_policy
from berth.config.errors import PolicyError
from tests.unit.descheduling.kit import policy

WRITTEN = b"""
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: pool in (a, b)
maxNoOfPodsToEvictPerNode: 5
maxNoOfPodsToEvictPerNamespace: 6
maxNoOfPodsToEvictTotal: 7
gracePeriodSeconds: 30
profiles:
- name: usual
  pluginConfig:
  - name: DefaultEvictor
    args: {nodeFit: true, minReplicas: 2, minPodAge: 1h, ignorePvcPods: true}
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 20, nvidia.com/gpu: 10.5}
      targetThresholds: {cpu: 50, nvidia.com/gpu: 50}
  plugins:
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
    deschedule: {enabled: [RemoveFailedPods]}
    filter: {enabled: [DefaultEvictor]}
"""


def text(document):
    return json.dumps(document).encode()


def test_a_policy_of_the_descheduler():
    """Limits, arguments and defaults are the descheduler's; Deschedule comes before Balance."""
    found = read_policy(WRITTEN, "policy.yaml")
    (profile,) = found.profiles

    assert ("pool in (a, b)", 5, 6, 7, 30) == (
        found.node_selector,
        found.max_per_node,
        found.max_per_namespace,
        found.most,
        found.grace_period_seconds,
    )
    names = [name for name, _ in profile.strategies]
    assert ["RemoveFailedPods", "RemoveDuplicates", "LowNodeUtilization"] == names
    assert 3600 == profile.strategies[0][1].min_pod_lifetime_seconds
    assert {"cpu": 20.0, "nvidia.com/gpu": 10.5} == profile.strategies[2][1].thresholds
    assert ("1h", True) == (profile.evictor.min_pod_age, profile.evictor.ignore_pvc_pods)


ARGS = "profiles[0].pluginConfig[1].args"
EVICTOR = "profiles[0].pluginConfig[0].args"


KUBERNETES = "KubernetesMetrics"
CPU = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
GPUS = {"nvidia.com/gpu": 20}


def provider(server):
    """A policy's fields that name a Prometheus."""
    return {"metricsProviders": [{"source": "Prometheus", "prometheus": server}]}


@pytest.mark.parametrize(
    ("strategy", "args", "complaint"),
    [
        ("PodLifeTime", {"maxAge": 1}, f"{ARGS}: object contains unknown field `maxAge`"),
        ("PodLifeTime", {}, f"{ARGS}.maxPodLifeTimeSeconds: found no criterion"),
        ("PodLifeTime", {"states": ["Gone"]}, f"{ARGS}.states: found 'Gone'"),
        ("PodLifeTime", {"conditions": [{}]}, f"{ARGS}.conditions[0]: found nothing in it"),
        ("RemovePodsViolatingNodeAffinity", {}, f"{ARGS}.nodeAffinityType: found nothing; write required"),
        (
            "RemovePodsViolatingNodeTaints",
            {"includedTaints": ["a"], "excludedTaints": ["b"]},
            f"{ARGS}.excludedTaints: found beside includedTaints",
        ),
        (
            "RemovePodsViolatingInterPodAntiAffinity",
            {"namespaces": {"include": ["a"], "exclude": ["b"]}},
            f"{ARGS}.namespaces: found include and exclude",
        ),
        (
            "RemovePodsViolatingInterPodAntiAffinity",
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            f"{ARGS}.labelSelector: ",
        ),
        (
            "RemovePodsViolatingTopologySpreadConstraint",
            {"topologyBalanceNodeFit": False},
            f"{ARGS}.topologyBalanceNodeFit: no pod moves without a node",
        ),
        (
            "RemovePodsViolatingTopologySpreadConstraint",
            {"constraints": ["Never"]},
            f"{ARGS}.constraints: found 'Never'; there are DoNotSchedule, ScheduleAnyway",
        ),
        ("RemovePodsHavingTooManyRestarts", {}, f"{ARGS}.podRestartThreshold: found 0; write at least 1"),
        ("RemoveFailedPods", {"reasons": [""]}, f"{ARGS}.reasons: found an empty one"),
        ("HighNodeUtilization", {}, f"{ARGS}.thresholds: found none"),
        ("HighNodeUtilization", {"thresholds": {"cpu": 101}}, f"{ARGS}.thresholds[...]: expected `float` <="),
        (
            "HighNodeUtilization",
            {"thresholds": {"cpu": 1}, "evictableNamespaces": {"include": ["a"]}},
            f"{ARGS}.evictableNamespaces.include: found namespaces",
        ),
        (
            "LowNodeUtilization",
            {"thresholds": {"cpu": 20}, "targetThresholds": {"memory": 50}},
            f"{ARGS}.targetThresholds: found other resources",
        ),
        (
            "LowNodeUtilization",
            {"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 50}},
            f"{ARGS}.thresholds[cpu]: found 60, above the target",
        ),
        (
            "LowNodeUtilization",
            {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "metricsUtilization": {}},
            f"{ARGS}.metricsUtilization.source: found ''; there are KubernetesMetrics, Prometheus",
        ),
        *(
            ("LowNodeUtilization", {**CPU, "metricsUtilization": metrics}, f"{ARGS}.{complaint}")
            for metrics, complaint in [
                ({"source": "SignalFx"}, "metricsUtilization.source: found 'SignalFx'; there are"),
                (
                    {"metricsServer": True, "source": KUBERNETES},
                    "metricsUtilization.metricsServer: found beside",
                ),
                ({"source": KUBERNETES, "prometheus": {}}, "metricsUtilization.prometheus: found beside"),
                ({"source": "Prometheus"}, "metricsUtilization.prometheus.query: found none; write PromQL"),
                (
                    {"source": "Prometheus", "prometheus": {"query": "q"}},
                    "thresholds: found cpu; with the source",
                ),
                (
                    {"source": "Prometheus", "prometheus": {"querry": "q"}},
                    "metricsUtilization.prometheus: object",
                ),
            ]
        ),
        (
            "LowNodeUtilization",
            {"thresholds": GPUS, "targetThresholds": GPUS, "metricsUtilization": {"source": KUBERNETES}},
            f"{ARGS}.thresholds[nvidia.com/gpu]: metrics-server has cpu, memory, pods; take it out",
        ),
    ],
)
def test_arguments_are_refused_by_field(strategy, args, complaint):
    """The file, the field and a remedy are named."""
    with pytest.raises(PolicyError) as refused:
        read_policy(text(policy((strategy, args))), "policy.yaml")

    assert str(refused.value).startswith(f"policy.yaml: {complaint}")
    assert "; " in str(refused.value)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"nodeSelector": "a=b"}, "nodeSelector: every node is tried"),
        ({"minPodAge": "soon"}, "minPodAge: time: invalid duration"),
        ({"minPodAge": "-1h"}, "minPodAge: found -1h"),
        ({"noEvictionPolicy": "Never"}, "noEvictionPolicy: found 'Never'"),
        ({"priorityThreshold": {"value": 1, "name": "high"}}, "priorityThreshold: found value and name"),
        ({"podProtections": {"extraEnabled": ["All"]}}, "podProtections.extraEnabled: found 'All'"),
        ({"evictDaemonSetPods": True}, "evictDaemonSetPods: a DaemonSet's pod has no other node"),
        (
            {"podProtections": {"extraEnabled": ["PodsWithPVC"]}, "evictLocalStoragePods": True},
            "podProtections: found beside evictLocalStoragePods",
        ),
    ],
)
def test_the_evictor_is_refused_by_field(args, complaint):
    """What DefaultEvictor may say is checked like a strategy's arguments."""
    with pytest.raises(PolicyError) as refused:
        read_policy(text(policy("RemoveDuplicates", evictor=args)), "policy.yaml")

    assert str(refused.value).startswith(f"policy.yaml: {EVICTOR}.{complaint}")


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"apiVersion": "descheduler/v1beta1"}, "apiVersion: found 'descheduler/v1beta1'; write apiVersion"),
        ({"kind": "Policy"}, "kind: found 'Policy'; write apiVersion descheduler/v1alpha2, kind Desched"),
        ({"profiles": []}, "profiles: found 0"),
        ({"nodeSelector": "a b c"}, "nodeSelector: unable to parse requirement"),
        ({"metricsProviders": [{}]}, "metricsProviders[0].source: found ''; there are KubernetesMetrics"),
        (
            {"metricsProviders": [{"source": KUBERNETES}] * 2},
            "metricsProviders[1].source: KubernetesMetrics is",
        ),
        ({"metricsProviders": [{"source": "Prometheus"}]}, "metricsProviders[0].prometheus.url: found none"),
        (
            provider({"url": "ftp://a"}),
            "metricsProviders[0].prometheus.url: 'ftp://a' is no URL; write it as",
        ),
        (
            provider({"url": "http://a", "authToken": {"secretReference": {"name": "a"}}}),
            "metricsProviders[0].prometheus.authToken.secretReference: found no Secret; write its namespace",
        ),
        (
            {"metricsProviders": [{"source": KUBERNETES}], "metricsCollector": {"enabled": True}},
            "metricsCollector: found beside the provider KubernetesMetrics; take it out",
        ),
        ({"evictionFailureEventNotification": True}, "evictionFailureEventNotification: evictions that fail"),
        ({"maxNoOfPodsToEvictTotal": -1}, "maxNoOfPodsToEvictTotal: expected `int` >= 0"),
        ({"strategies": {}}, "object contains unknown field `strategies`"),
    ],
)
def test_the_policy_is_refused_by_field(changed, complaint):
    """So is what stands around the profiles."""
    with pytest.raises(PolicyError) as refused:
        read_policy(text({**policy("RemoveDuplicates"), **changed}), "policy.yaml")

    assert str(refused.value).startswith(f"policy.yaml: {complaint}")


@pytest.mark.parametrize(
    ("point", "name", "complaint"),
    [
        ("balance", "PodLifeTime", "balance.enabled[0]: found 'PodLifeTime'; there are RemoveDuplicates"),
        ("deschedule", "RemoveDuplicates", "deschedule.enabled[0]: found 'RemoveDuplicates'"),
        ("sort", "Mine", "sort.enabled[0]: found 'Mine'; there are DefaultEvictor"),
    ],
)
def test_plugins_stand_at_their_point(point, name, complaint):
    """A plugin that an extension point does not have is refused."""
    document = policy()
    document["profiles"][0]["plugins"][point] = {"enabled": [name]}

    with pytest.raises(PolicyError) as refused:
        read_policy(text(document), "policy.yaml")

    assert str(refused.value).startswith(f"policy.yaml: profiles[0].plugins.{complaint}")


def test_a_strategy_that_needs_arguments_is_refused_without():
    """Enabled without a pluginConfig, a strategy has its defaults, which may not do."""
    document = policy()
    document["profiles"][0]["plugins"]["balance"] = {"enabled": ["HighNodeUtilization"]}

    with pytest.raises(PolicyError, match=r"pluginConfig\[HighNodeUtilization\].args.thresholds: found none"):
        read_policy(text(document), "policy.yaml")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        pytest.param(b" " * (MAX_BYTES + 1), "more than 1048576 bytes", id="large"),
        pytest.param(b"{", "json parse error", id="broken"),
        pytest.param(b"kind: a\nkind: b\n", 'key "kind" already set', id="twice"),
        pytest.param(b"", "found an empty file; write apiVersion descheduler/v1alpha2", id="empty"),
        pytest.param(b"- 1", "found a list; write apiVersion descheduler/v1alpha2", id="a list"),
        pytest.param(b"kind: [a]", "kind: found nothing; write apiVersion", id="a kind that is no text"),
    ],
)
def test_what_is_no_policy(source, complaint):
    """Any bytes are refused in one line."""
    with pytest.raises(PolicyError) as refused:
        read_policy(source, "policy.yaml")

    assert str(refused.value).startswith("policy.yaml: ")
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        pytest.param(
            {
                "apiVersion": "descheduler/v1alpha1",
                "kind": "DeschedulerPolicy",
                "strategies": {"RemoveDuplicates": {"enabled": True}},
            },
            "apiVersion: found descheduler/v1alpha1, which descheduler v0.30 read last; write "
            "descheduler/v1alpha2 and RemoveDuplicates as plugins of a profile, params as args",
            id="an older version",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "descheduler"},
                "data": {"other": "x", "p.yaml": "kind: DeschedulerPolicy"},
            },
            "kind: found a ConfigMap; write the text of its data 'p.yaml' alone into the file",
            id="a ConfigMap around it",
        ),
        pytest.param(
            {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration", "dryRun": True},
            "kind: found koordinator's DeschedulerConfiguration, whose profiles are other plugins; write",
            id="koordinator's",
        ),
        pytest.param(
            {"deschedulerPolicyAPIVersion": "descheduler/v1alpha2", "deschedulerPolicy": {"profiles": []}},
            "deschedulerPolicy: found the values of the descheduler's Helm chart; write its fields under",
            id="values of the chart",
        ),
        pytest.param(
            {"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "spec": {}},
            "kind: found the object of OpenShift's descheduler operator",
            id="OpenShift's",
        ),
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
            "kind: found the scheduler's configuration; give it as --config",
            id="the scheduler's configuration",
        ),
    ],
)
def test_files_of_other_programs(document, complaint):
    """What holds a policy, or is taken for one, is named with what to write: before any of its fields."""
    with pytest.raises(PolicyError) as refused:
        read_policy(text(document), "policy.yaml")

    assert str(refused.value).startswith(f"policy.yaml: {complaint}")


@pytest.mark.parametrize("point", ["presort", "preSort", "preevictionfilter", "preEvictionFilter"])
def test_both_spellings_of_points(point):
    """Extension points are read as upstream's tags and as its README spell them."""
    document = policy("RemoveDuplicates")
    document["profiles"][0]["plugins"][point] = {"enabled": ["DefaultEvictor"]}

    (profile,) = read_policy(text(document), "policy.yaml").profiles

    assert ["RemoveDuplicates"] == [name for name, _ in profile.strategies]


@pytest.mark.parametrize(
    ("evictor", "remedy"), [({"nodefit": True}, "write nodeFit"), ({"fit": True}, "correct the field")]
)
def test_other_letters_of_a_field(evictor, remedy):
    """A field in other letters is refused with its own; one that is unknown in any letters has no guess."""
    with pytest.raises(PolicyError) as refused:
        read_policy(text(policy("RemoveDuplicates", evictor=evictor)), "policy.yaml")

    (field,) = evictor
    assert f"policy.yaml: {EVICTOR}: object contains unknown field `{field}`; {remedy}" == str(refused.value)


@pytest.mark.parametrize("source", [KUBERNETES, "Prometheus"])
def test_a_source_that_no_provider_has(source):
    """The provider is missed where the strategy runs, and nowhere else."""
    metrics = {"source": source, **({"prometheus": {"query": "q"}} if source == "Prometheus" else {})}
    bounds = {"MetricResource": 20} if source == "Prometheus" else {"cpu": 20}
    args = {"thresholds": bounds, "targetThresholds": bounds, "metricsUtilization": metrics}
    written = policy(("LowNodeUtilization", args))

    with pytest.raises(
        PolicyError, match=f"source: found {source}, which metricsProviders does not have; write"
    ):
        read_policy(text(written), "policy.yaml")
    written["profiles"][0]["plugins"]["balance"]["enabled"] = []
    assert () == read_policy(text(written), "policy.yaml").profiles[0].strategies


def test_the_policies_of_the_page():
    """Every policy that docs/deschedule.md shows is one."""
    page = (Path(__file__).parents[4] / "docs/deschedule.md").read_text(encoding="utf-8")
    shown = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if KIND in block[:80]]

    assert 4 == len(shown)
    assert all(read_policy(block.encode(), "page").profiles[0].strategies for block in shown)
