"""What a Scheduler becomes: its files, its rights, its pods."""

import pytest
import yaml

from berth.operator.errors import ConfigurationProblemError, MissingPluginError
from berth.operator.rendering import SchedulerDefaults, plan
from tests.unit.operator import kit

SETTINGS = SchedulerDefaults("berth/scheduler:test")
GPU = kit.plugin(
    arguments={"policy": "pack"}, extensionPoints=["filter", "score"], profiles=["packing"], weight=3
)


def made(*plugins, settings=SETTINGS, **spec):
    document = kit.scheduler(plugins=[{"name": one["metadata"]["name"]} for one in plugins], **spec)
    document["metadata"] |= {"namespace": "team", "uid": "u1"}
    return plan(document, {one["metadata"]["name"]: one for one in plugins}, settings)


def found(plan, kind):
    return [one for one in plan.objects if one["kind"] == kind]


def deployment(plan):
    return found(plan, "Deployment")[0]["spec"]


def pod(plan):
    return deployment(plan)["template"]["spec"]


def files(plan):
    return {
        name: yaml.safe_load(text) for one in found(plan, "ConfigMap") for name, text in one["data"].items()
    }


def test_files():
    """The configuration is one that kube-scheduler would take, and the plugins stand beside it."""
    both = files(made(GPU, podMaxBackoffSeconds=20))

    configuration = both["scheduler.yaml"]
    assert ("KubeSchedulerConfiguration", 20) == (
        configuration["kind"],
        configuration["podMaxBackoffSeconds"],
    )
    assert ("berth-main", "team") == tuple(
        configuration["leaderElection"][name] for name in ("resourceName", "resourceNamespace")
    )
    enabled = configuration["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    assert [{"name": "gpu-share", "weight": 3}] == enabled
    listed = both["plugins.yaml"]["plugins"]
    assert ["unix:/run/berth/gpu-share/private/plugin.sock"] == [one["address"] for one in listed]
    assert {"policy": "pack"} == listed[0]["args"]


def test_named_by_profile():
    """A plugin that a profile names itself is not enabled a second time."""
    sets = {"score": {"enabled": [{"name": "gpu-share", "weight": 7}]}}
    both = files(made(GPU, profiles=[{"schedulerName": "packing", "plugins": sets}]))

    assert sets == both["scheduler.yaml"]["profiles"][0]["plugins"]


def test_exempt_pods():
    """Whom a plugin's failures cost nothing is said in the list, as it is in the resource."""
    exempt = {"namespaces": ["gpu"], "matchLabels": {"app": "x"}}
    listed = files(made(kit.plugin(exemptPods=exempt, failurePolicy={"filter": "Fail"})))["plugins.yaml"][
        "plugins"
    ]

    assert (exempt, {"filter": "Fail"}) == (listed[0]["exemptPods"], listed[0]["failurePolicy"])


def test_shadow():
    """A plugin in shadow is enabled in its profiles as any other, and its entry says that it has no say."""
    taking_part, shadow = (
        files(made(kit.plugin(profiles=["packing"], **fields))) for fields in ({}, {"shadow": True})
    )

    assert taking_part["scheduler.yaml"] == shadow["scheduler.yaml"]
    assert [None, True] == [
        both["plugins.yaml"]["plugins"][0].get("shadow") for both in (taking_part, shadow)
    ]
    with pytest.raises(ConfigurationProblemError, match="must be true or false"):
        made(kit.plugin(shadow="yes"))


def test_sidecar():
    """A plugin with an image runs as a native sidecar, with the sockets' volume and its own address."""
    containers = pod(made(GPU))["initContainers"]

    assert [("plugin-gpu-share", "Always")] == [(one["name"], one["restartPolicy"]) for one in containers]
    assert {
        "name": "BERTH_PLUGIN_ADDRESS",
        "value": "unix:/run/berth/gpu-share/private/plugin.sock",
    } in containers[0]["env"]
    sockets = {"name": "socket-gpu-share", "mountPath": "/run/berth/gpu-share"}
    assert sockets in containers[0]["volumeMounts"]
    assert sockets in pod(made(GPU))["containers"][0]["volumeMounts"]


def test_sidecars_apart():
    """No sidecar sees the socket, the files or the token of another, or of the scheduler, unless it asks."""
    other = kit.plugin("other", automountServiceAccountToken=True)
    spec = pod(made(GPU, other))
    first, second = ({one["name"] for one in each["volumeMounts"]} for each in spec["initContainers"])

    assert {"socket-gpu-share", "tmp-gpu-share"} == first
    assert {"socket-other", "tmp-other", "service-account"} == second
    assert not spec["automountServiceAccountToken"]
    assert "service-account" in {one["name"] for one in spec["containers"][0]["volumeMounts"]}


def test_plugins_roles():
    """A scheduler is bound to the roles that its plugins ask for."""
    result = made(kit.plugin(clusterRoles=["berth-podgroups"]))

    assert "berth-podgroups:team:main" in {
        one["metadata"]["name"] for one in found(result, "ClusterRoleBinding")
    }


def test_a_plugin_at_an_address():
    """A plugin with an address is dialled there, and has no container."""
    result = made(kit.plugin(address="localhost:50051", image=None))

    assert "initContainers" not in pod(result)
    assert "localhost:50051" == files(result)["plugins.yaml"]["plugins"][0]["address"]


def test_a_plugin_at_an_address_without_certificates():
    """A plugin on a network is refused without certificates, with the plugin and the remedy."""
    with pytest.raises(ConfigurationProblemError, match=r'plugin gpu-share: "10\.1\.2\.3:7777" .*: give tls'):
        made(kit.plugin(address="10.1.2.3:7777", image=None))


def test_metadata_keys():
    """Which labels and annotations a plugin may write is in its entry."""
    result = made(kit.plugin(metadataKeys=["example.com/*"]))

    assert ["example.com/*"] == files(result)["plugins.yaml"]["plugins"][0]["metadataKeys"]


def test_user_of_its_own():
    """A sidecar with a user of its own opens its socket to the pod's group; the scheduler trusts it."""
    result = made(kit.plugin("gpu-share", runAsUser=65601))
    (sidecar,) = pod(result)["initContainers"]
    (listed,) = files(result)["plugins.yaml"]["plugins"]

    assert (65601, 65601) == (sidecar["securityContext"]["runAsUser"], listed["user"])
    assert {"name": "BERTH_PLUGIN_SOCKET_SHARED", "value": "true"} in sidecar["env"]
    assert pod(result)["securityContext"]["runAsUser"] == pod(result)["securityContext"]["fsGroup"] == 65532


def test_tls():
    """A plugin at host:port is dialled with its Secret's certificates, which the scheduler alone mounts."""
    far = kit.plugin(
        "far", address="plugins.team:50051", tls={"secretName": "berth-plugin-far-tls", "serverName": "far"}
    )
    result = made(GPU, far)
    (_, listed) = files(result)["plugins.yaml"]["plugins"]

    folder = "/etc/berth/tls/far"
    expected = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    assert {**{key: f"{folder}/{name}" for key, name in expected.items()}, "serverName": "far"} == listed[
        "tls"
    ]
    assert [("tls-far", "berth-plugin-far-tls")] == [
        (one["name"], one["secret"]["secretName"])
        for one in pod(result)["volumes"]
        if one["name"].startswith("tls-")
    ]
    mounts = {"name": "tls-far", "mountPath": folder, "readOnly": True}
    assert mounts in pod(result)["containers"][0]["volumeMounts"]
    assert mounts not in pod(result)["initContainers"][0]["volumeMounts"]


def test_restricted():
    """Every container meets the restricted pod security standard, on a read-only root."""
    spec = pod(made(GPU))

    assert spec["securityContext"]["runAsNonRoot"]
    assert "RuntimeDefault" == spec["securityContext"]["seccompProfile"]["type"]
    for one in [*spec["containers"], *spec["initContainers"]]:
        context = one["securityContext"]
        assert not context["allowPrivilegeEscalation"]
        assert context["readOnlyRootFilesystem"]
        assert ["ALL"] == context["capabilities"]["drop"]


@pytest.mark.parametrize(
    ("disabled", "without"),
    [
        ((), set()),
        (("PodTopologySpread",), {"spreading"}),
        (("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"), {"volumes"}),
        (("VolumeBinding",), set()),
        (("*",), {"spreading", "volumes", "affinity", "preemption", "dynamic-resources"}),
    ],
)
def test_rights(disabled, without):
    """A scheduler has the rights that its profiles' plugins need, and no others."""
    everything = {"affinity", "dynamic-resources", "preemption", "spreading", "volumes"}
    sets = {
        "multiPoint": {
            "disabled": [{"name": name} for name in disabled],
            "enabled": [{"name": name} for name in ("PrioritySort", "DefaultBinder") if disabled == ("*",)],
        }
    }
    result = made(profiles=[{"schedulerName": "packing", "plugins": sets}])
    roles = {one["roleRef"]["name"] for one in found(result, "ClusterRoleBinding")}

    assert {"berth-scheduler", *(f"berth-scheduler-{group}" for group in everything - without)} == roles


def test_rights_with_plugins():
    """Sidecars may ask for any event: with them nothing is left out."""
    sets = {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}
    result = made(GPU, profiles=[{"schedulerName": "packing", "plugins": sets}])

    assert "berth-scheduler-spreading" in {
        one["roleRef"]["name"] for one in found(result, "ClusterRoleBinding")
    }


def test_owned():
    """All that lies in the Scheduler's namespace goes with it; the rest says whose it is."""
    for one in made(GPU, replicas=2).objects:
        metadata = one["metadata"]
        if one["kind"] == "ClusterRoleBinding":
            assert "team" == metadata["labels"]["berth.dev/scheduler-namespace"]
        else:
            assert ["u1"] == [owner["uid"] for owner in metadata["ownerReferences"]]
            assert not any(owner.get("blockOwnerDeletion") for owner in metadata["ownerReferences"])


@pytest.mark.parametrize(
    ("spec", "kind", "count"),
    [
        ({}, "PodDisruptionBudget", 0),
        ({"replicas": 2}, "PodDisruptionBudget", 1),
        ({}, "NetworkPolicy", 1),
        ({"networkPolicy": False}, "NetworkPolicy", 0),
        ({}, "RoleBinding", 1),
        ({"leaderElection": {"leaderElect": False}}, "RoleBinding", 0),
        ({}, "ServiceMonitor", 1),
        ({"telemetry": {"metrics": {"serviceMonitor": False}}}, "ServiceMonitor", 0),
    ],
)
def test_kinds(spec, kind, count):
    """What is not needed is not made."""
    assert count == len(found(made(settings=SchedulerDefaults("x", service_monitors=True), **spec), kind))


def test_rights_to_leases():
    """A scheduler may change no lease but its own; where others lead is read in theirs."""
    (role,) = found(made(leaderElection={"resourceName": "night"}), "Role")
    rights = {verb: rule.get("resourceNames") for rule in role["rules"] for verb in rule["verbs"]}
    assert {"create": None, "list": None, "get": ["night"], "update": ["night"]} == rights

    (binding,) = found(made(leaderElection={"resourceName": "night"}), "RoleBinding")
    assert ("Role", role["metadata"]["name"]) == (binding["roleRef"]["kind"], binding["roleRef"]["name"])


def test_metrics_of_sidecars():
    """A sidecar with a port for metrics is given it, let through and scraped; others stay as they are."""
    share, fair = kit.plugin(metricsPort=9463), kit.plugin(name="queues")
    plan = made(share, fair, settings=SchedulerDefaults("x", service_monitors=True))
    measured, plain = pod(plan)["initContainers"]
    assert {"name": "metrics-9463", "containerPort": 9463, "protocol": "TCP"} == measured["ports"][0]
    assert {"name": "BERTH_METRICS_ADDRESS", "value": "0.0.0.0:9463"} in measured["env"]
    assert "ports" not in plain

    service = found(plan, "Service")[0]["spec"]["ports"]
    assert [("https", "https"), ("metrics-9463",) * 2] == [(p["name"], p["targetPort"]) for p in service]
    (rule,) = found(plan, "NetworkPolicy")[0]["spec"]["ingress"]
    assert [10259, 9463] == [port["port"] for port in rule["ports"]]
    endpoints = found(plan, "ServiceMonitor")[0]["spec"]["endpoints"]
    assert [("https", "https"), ("metrics-9463", "http")] == [(e["port"], e["scheme"]) for e in endpoints]


def test_metrics_where_the_user_says():
    """An address in the plugin's own environment stands, and is there once."""
    own = {"name": "BERTH_METRICS_ADDRESS", "value": "127.0.0.1:1"}
    (sidecar,) = pod(made(kit.plugin(metricsPort=9463, env=[own])))["initContainers"]

    assert [own] == [one for one in sidecar["env"] if one["name"] == own["name"]]


def secret_in_env(name):
    return [{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]


@pytest.mark.parametrize(
    ("plugin", "field"),
    [
        ({"env": secret_in_env("berth-operator-ca")}, "env.valueFrom.secretKeyRef: berth-operator-ca"),
        ({"env": [{"name": "B", "value": "1"}, *secret_in_env("db")]}, "env.valueFrom.secretKeyRef: db"),
        ({"env": secret_in_env("")}, "env.valueFrom.secretKeyRef: "),
    ],
)
def test_secrets_that_are_none_for_plugins(plugin, field):
    """Who writes a SchedulerPlugin reads by it what the kubelet mounts: no other Secret of the namespace."""
    with pytest.raises(ConfigurationProblemError, match="is no Secret for plugins") as caught:
        made(kit.plugin(**plugin))
    assert field in str(caught.value)
    far = kit.plugin("far", address="h:1", tls={"secretName": "berth-serving-certificates"})
    with pytest.raises(ConfigurationProblemError, match=r"tls\.secretName: berth-serving-certificates"):
        made(far)


def test_a_secret_for_plugins():
    (sidecar,) = pod(made(kit.plugin(env=secret_in_env("team-berth-plugin-db"))))["initContainers"]

    assert secret_in_env("team-berth-plugin-db")[0] in sidecar["env"]


@pytest.mark.parametrize(
    ("ports", "why"),
    [
        ((9463, 9463), "SchedulerPlugin other: metricsPort: 9463 is that of plugin gpu-share"),
        ((9463, 10259), "SchedulerPlugin other: metricsPort: 10259 is that of the scheduler"),
    ],
)
def test_ports_of_one_pod(ports, why):
    """Containers of a pod share its ports, so that each needs one of its own."""
    one, other = ports
    with pytest.raises(ConfigurationProblemError, match=why):
        made(kit.plugin(metricsPort=one), kit.plugin(name="other", metricsPort=other))


def test_no_monitors():
    """Where the cluster has no ServiceMonitors, none is made."""
    assert [] == found(made(), "ServiceMonitor")


def test_fingerprint():
    """What takes a restart changes the pods; what reaches a running scheduler does not."""
    one = made(GPU)
    other = made({**GPU, "spec": {**GPU["spec"], "arguments": {"policy": "spread"}}})
    third = made(GPU, podMaxBackoffSeconds=20)

    assert deployment(one) == deployment(other)
    assert files(one)["plugins.yaml"] != files(other)["plugins.yaml"]
    assert deployment(one)["template"] != deployment(third)["template"]
    assert {"berth-main-config-" + third.fingerprint[:10], "berth-main-plugins", "berth-main-ca"} == {
        each["metadata"]["name"] for each in found(third, "ConfigMap")
    }


def test_one_at_a_time():
    """Without leader election the old pod goes before the new one comes: nothing else keeps them apart."""
    alone, elected = (
        deployment(made(leaderElection={"leaderElect": elects}))["strategy"] for elects in (False, True)
    )

    assert {"type": "Recreate"} == alone
    assert {"maxSurge": 1, "maxUnavailable": 0} == elected["rollingUpdate"]


def test_one_container_of_two_plugins():
    """Plugins whose containers would have one name are both named."""
    words = r"plugins a\.b and a-b would both be plugin-a-b in the pod"
    with pytest.raises(ConfigurationProblemError, match=words):
        made(kit.plugin("a.b"), kit.plugin("a-b"))


def variables(container):
    """The container's environment, a field of the pod by its path."""
    return {
        one["name"]: one.get("value") or one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]
    }


def test_tracing():
    """Traces go where the spec says, and as many of them; the downward API says from where."""
    tracing = {
        "endpoint": "http://c:4317",
        "samplingRatePerMillion": 2500,
        "failedPerMinute": 5,
        "slowerThan": "250ms",
    }
    found = variables(pod(made(telemetry={"tracing": tracing}))["containers"][0])

    assert {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317",
        "OTEL_TRACES_SAMPLER_ARG": "0.0025",
        "BERTH_TRACES_FAILED_PER_MINUTE": "5",
        "BERTH_TRACES_SLOW_SECONDS": "0.25",
        "NODE_NAME": "spec.nodeName",
        "OTEL_RESOURCE_ATTRIBUTES": (
            "k8s.pod.name=$(POD_NAME),k8s.namespace.name=$(POD_NAMESPACE),k8s.node.name=$(NODE_NAME),"
            "k8s.container.name=scheduler,service.instance.id=$(POD_NAMESPACE).$(POD_NAME).scheduler"
        ),
    }.items() <= found.items()
    assert list(found).index("NODE_NAME") < list(found).index("OTEL_RESOURCE_ATTRIBUTES")


@pytest.mark.parametrize(
    ("rate", "share"),
    [
        ({}, "1"),
        ({"samplingPercent": 25}, "0.25"),
        ({"samplingPercent": 100, "samplingRatePerMillion": 0}, "0"),
    ],
)
def test_sampling_rate_of_a_scheduler_that_is_stored_already(rate, share):
    """The earlier name of the rate counts for as long as the new one is not there."""
    tracing = {"endpoint": "http://c:4317", **rate}
    found = variables(pod(made(telemetry={"tracing": tracing}))["containers"][0])

    assert share == found["OTEL_TRACES_SAMPLER_ARG"]


@pytest.mark.parametrize(("protocol", "endpoint"), [("grpc", "http://c:4317"), ("http/protobuf", None)])
def test_plugins_trace_to_the_same_collector(protocol, endpoint):
    """A plugin's spans join the scheduler's, if the collector takes gRPC; its own variables win."""
    plugin = {**GPU, "spec": {**GPU["spec"], "env": [{"name": "OTEL_SERVICE_NAME", "value": "mine"}]}}
    tracing = {"endpoint": "http://c:4317", "protocol": protocol}
    found = variables(pod(made(plugin, telemetry={"tracing": tracing}))["initContainers"][0])

    assert ("mine", endpoint) == (found["OTEL_SERVICE_NAME"], found.get("OTEL_EXPORTER_OTLP_ENDPOINT"))


def test_flags():
    """Gates, logging and the live page are flags, as kube-scheduler has the first two."""
    telemetry = {"logging": {"format": "json", "verbosity": 4}, "livePage": True}
    arguments = pod(made(featureGates={"GenericWorkload": True}, telemetry=telemetry))["containers"][0][
        "args"
    ]

    assert {"--feature-gates=GenericWorkload=true", "--logging-format=json", "--v=4", "--live-page"} <= set(
        arguments
    )


def test_missing_plugin():
    """A plugin that is not there is named, with what to do."""
    document = kit.scheduler(plugins=[{"name": "absent"}])
    document["metadata"] |= {"namespace": "team", "uid": "u1"}

    with pytest.raises(MissingPluginError, match=r"no SchedulerPlugin absent .*create it, or remove it"):
        plan(document, {}, SETTINGS)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {
                "profiles": [
                    {"schedulerName": "a", "plugins": {"score": {"enabled": [{"name": "NodeResourceFit"}]}}}
                ]
            },
            "did you mean NodeResourcesFit",
        ),
        (
            {
                "profiles": [
                    {"schedulerName": "a", "pluginConfig": [{"name": "NodeResourcesFit", "args": {"x": 1}}]}
                ]
            },
            "unknown field",
        ),
        ({"featureGates": {"Nonsense": True}}, "Nonsense"),
    ],
)
def test_bad_configuration(spec, words):
    """What a scheduler would not start with is refused in the scheduler's own words."""
    with pytest.raises(ConfigurationProblemError, match=words):
        made(**spec)
