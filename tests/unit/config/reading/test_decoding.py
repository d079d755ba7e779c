"""Types and strictness: what a readable document may say."""

import pytest

from berth.config import DecodeError, load
from tests.unit.config.files import args_file, file, json_file, profile_file


def message_of(text):
    with pytest.raises(DecodeError) as error:
        load(text)
    return str(error.value)


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            file("parallelism: [1]"),
            "array into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        ),
        (
            file("parallelism: 1.5"),
            "number 1.5 into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        ),
        (
            file("podMaxBackoffSeconds: 9223372036854775808"),
            (
                "number 9223372036854775808 into Go struct field"
                " KubeSchedulerConfiguration.podMaxBackoffSeconds of type int64"
            ),
        ),
        (
            file("enableContentionProfiling: 'no'"),
            (
                "string into Go struct field"
                " KubeSchedulerConfiguration.DebuggingConfiguration.enableContentionProfiling of type bool"
            ),
        ),
        (
            file("leaderElection: true"),
            (
                "bool into Go struct field KubeSchedulerConfiguration.leaderElection"
                " of type v1alpha1.LeaderElectionConfiguration"
            ),
        ),
        (
            json_file(clientConnection={"qps": 5}).replace("5", "1e999"),
            (
                "number 1e999 into Go struct field ClientConnectionConfiguration.clientConnection.qps"
                " of type float32"
            ),
        ),
        (
            file("clientConnection: {qps: 1e39}"),
            (
                "number 1e+39 into Go struct field ClientConnectionConfiguration.clientConnection.qps of"
                " type float32"
            ),
        ),
        (
            file("profiles: {}"),
            (
                "object into Go struct field KubeSchedulerConfiguration.profiles of type"
                " []v1.KubeSchedulerProfile"
            ),
        ),
        (
            file("profiles: [a]"),
            "string into Go struct field KubeSchedulerConfiguration.profiles of type v1.KubeSchedulerProfile",
        ),
        (
            profile_file(plugins=[]),
            "array into Go struct field KubeSchedulerProfile.profiles.plugins of type v1.Plugins",
        ),
        (
            profile_file(plugins={"bind": {"enabled": {}}}),
            "object into Go struct field PluginSet.profiles.plugins.bind.enabled of type []v1.Plugin",
        ),
        (
            profile_file(pluginConfig=[7]),
            "number into Go struct field KubeSchedulerProfile.profiles.pluginConfig of type v1.PluginConfig",
        ),
        (
            file("extenders: [{tlsConfig: {caData: 5}}]"),
            "number into Go struct field ExtenderTLSConfig.extenders.tlsConfig.caData of type []uint8",
        ),
        (
            file("extenders: [{tlsConfig: {caData: [1, 300]}}]"),
            "number 300 into Go struct field ExtenderTLSConfig.extenders.tlsConfig.caData of type uint8",
        ),
        (
            file("extenders: [{managedResources: [{name: 1}]}]"),
            (
                "number into Go struct field ExtenderManagedResource.extenders.managedResources.name of"
                " type string"
            ),
        ),
    ],
)
def test_wrong_type(text, what):
    """A wrong type names the value, the structure, the path and the type that is wanted."""
    assert f"json: cannot unmarshal {what}" == message_of(text)


@pytest.mark.parametrize(
    ("plugin", "args", "what"),
    [
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": 1}},
            "number|ScoringStrategy.scoringStrategy.type|v1.ScoringStrategyType",
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": "x"},
            "string|NodeResourcesFitArgs.ignoredResources|[]string",
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": [1]},
            "number|NodeResourcesFitArgs.ignoredResources|string",
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{"nodeTaintsPolicy": 1}]},
            "number|TopologySpreadConstraint.defaultConstraints.nodeTaintsPolicy|v1.NodeInclusionPolicy",
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{"labelSelector": {"matchLabels": {"a": 1}}}]},
            "number|LabelSelector.defaultConstraints.labelSelector.matchLabels|string",
        ),
        (
            "NodeAffinity",
            {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": 1}]}},
            (
                "number|PreferredSchedulingTerm.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution.preference"
                "|v1.NodeSelectorTerm"
            ),
        ),
        ("DynamicResources", {"filterTimeout": 5}, "number|DynamicResourcesArgs.filterTimeout|string"),
    ],
)
def test_wrong_type_in_args(plugin, args, what):
    """Inside arguments paths begin at the arguments, and the entry is named before them."""
    found, place, wanted = what.split("|")
    problem = f"json: cannot unmarshal {found} into Go struct field {place} of type {wanted}"

    expected = f"decoding .profiles[0].pluginConfig[0]: decoding args for plugin {plugin}: {problem}"
    assert expected == message_of(args_file(plugin, args))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (
            file("parallelism: a\nzzz: 1\nleaderElection: {retryPeriod: 5x}"),
            'time: unknown unit "x" in duration "5x"',
        ),
        (
            file("parallelism: a\nzzz: 1\npercentageOfNodesToScore: b"),
            "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism",
        ),
        (
            json_file(percentageOfNodesToScore="b", parallelism="a"),
            (
                "json: cannot unmarshal string into Go struct field"
                " KubeSchedulerConfiguration.percentageOfNodesToScore"
            ),
        ),
        (
            file(
                "zzz: 1\nprofiles: [{pluginConfig: [{name: VolumeBinding, args: {x: 1}}, {name:"
                " NodeAffinity, args: 5}]}]"
            ),
            (
                "decoding .profiles[0].pluginConfig[1]: decoding args for plugin NodeAffinity: couldn't"
                " get version/kind"
            ),
        ),
        (file("extenders: [{httpTimeout: null}]"), 'time: invalid duration ""'),
        (file("extenders: [{tlsConfig: {keyData: 'aGk'}}]"), "illegal base64 data at input byte 0"),
    ],
)
def test_which_error_wins(text, start):
    """A duration beats a wrong type, a wrong type beats strictness; between equals reading order decides."""
    assert message_of(text).startswith(start)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (file("metadata: {}"), 'unknown field "metadata"'),
        (file("b: 1\nB: 1\na: 1"), 'unknown field "B", unknown field "a", unknown field "b"'),
        (json_file(b=1, a=1), 'unknown field "b", unknown field "a"'),
        (
            file("profiles: [{}, {plugins: {filter: {enabled: [{}, {nam: x}]}}}]"),
            'unknown field "profiles[1].plugins.filter.enabled[1].nam"',
        ),
        (
            args_file("NodeAffinity", {"addedAffinity": {"x": 1}}),
            (
                "decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin"
                " NodeAffinity:"
                ' strict decoding error: unknown field "addedAffinity.x"'
            ),
        ),
    ],
)
def test_unknown_fields(text, items):
    """Unknown fields are all listed, in reading order."""
    assert f"strict decoding error: {items}" == message_of(text)


def test_order_of_strict_complaints():
    """YAML repetitions come first, then the structure's complaints, then those of each entry's arguments."""
    text = file(
        "x: 1\nparallelism: 1\nparallelism: 2\nprofiles: [{pluginConfig: [{name: VolumeBinding,"
        " args: {z: 1}}]}]"
    )

    expected = (
        "strict decoding error: yaml: unmarshal errors:\n"
        '  line 5: key "parallelism" already set in map, unknown field "x", '
        "decoding .profiles[0].pluginConfig[0]: strict decoding error: "
        'decoding args for plugin VolumeBinding: strict decoding error: unknown field "z"'
    )
    assert expected == message_of(text)


def test_repeated_json_fields():
    """JSON repetitions are listed with their paths, an unknown field only as unknown."""
    text = json_file()[:-1] + ', "extenders": [{"weight": 1, "weight": 1, "w": 1, "w": 1}]}'

    expected = 'strict decoding error: duplicate field "extenders[0].weight", unknown field "extenders[0].w"'
    assert expected == message_of(text)


def test_at_most_a_hundred_complaints():
    """A file full of unknown fields does not fill the log."""
    assert 100 == message_of(file({f"f{n}": 1 for n in range(150)})).count("unknown field")


@pytest.mark.parametrize("value", ["null", "~", ""])
def test_null_is_unset(value):
    """A null field is the same as none, and a null item is an empty one."""
    text = file(f"parallelism: {value}\nextenders: [{value or 'null'}]\nprofiles: [{value or 'null'}]")

    loaded = load(text)

    assert 16 == loaded.configuration.parallelism
    assert ("default-scheduler", 1) == (loaded.profiles[0].scheduler_name, len(loaded.extenders))


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"kind": "NodeAffinityArgs"}, None),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1"}, None),
        (
            {"kind": "KubeSchedulerConfiguration"},
            (
                "args for plugin NodeAffinity were not of type"
                " NodeAffinityArgs.kubescheduler.config.k8s.io, got"
                " KubeSchedulerConfiguration.kubescheduler.config.k8s.io"
            ),
        ),
        (
            {"apiVersion": "a/b/c"},
            "decoding args for plugin NodeAffinity: unexpected GroupVersion string: a/b/c",
        ),
        (
            {"apiVersion": "x/"},
            (
                "decoding args for plugin NodeAffinity: Object 'apiVersion' is missing in"
                ' \'{"apiVersion":"x/"}\''
            ),
        ),
    ],
)
def test_kind_of_args(args, problem):
    """Arguments may say what they are, and must say it right; what is left out is filled in."""
    text = args_file("NodeAffinity", args)

    if problem is None:
        assert load(text)
    else:
        assert f"decoding .profiles[0].pluginConfig[0]: {problem}" == message_of(text)


def test_another_kind_of_the_group():
    """A file of another kind is read strictly first, then refused."""
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: VolumeBindingArgs\n"

    assert (
        "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1,"
        " Kind=VolumeBindingArgs: "
    ) == message_of(header)
    assert 'strict decoding error: unknown field "x"' == message_of(header + "x: 1")


def test_integral_floats():
    """8.0 is a good integer in YAML, where numbers lose their form, and not in JSON."""
    assert 8 == load(file("parallelism: 8.0")).configuration.parallelism
    assert "number 8.0 into" in message_of(
        json_file(parallelism=1).replace('"parallelism": 1', '"parallelism": 8.0')
    )
