"""The rules for values: each violation, its field and its wording."""

import pytest

from berth.config import BuildError, ValidationError, load, parse_feature_gates
from berth.config.plugin_args import DynamicResourcesArgs
from berth.config.rules.names import is_extended_resource, label_value_problems, qualified_name_problems
from tests.unit.config.files import BUILDING, args_file, file, names, profile_file

PERCENT = "not in valid range [0, 100]"


def errors_of(text, **options):
    with pytest.raises(ValidationError) as error:
        load(text, **options)
    return list(error.value.messages)


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        (
            "percentageOfNodesToScore: 250",
            ["percentageOfNodesToScore: Invalid value: 250: not in valid range [0-100]"],
        ),
        ("parallelism: 0", ["parallelism: Invalid value: 0: should be an integer value greater than zero"]),
        (
            "podMaxBackoffSeconds: 0",
            [
                (
                    "podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to"
                    " PodInitialBackoffSeconds"
                )
            ],
        ),
        (
            "podInitialBackoffSeconds: 0",
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            "clientConnection: {burst: -1}",
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
        ),
        (
            "leaderElection: {renewDeadline: 15s}",
            ['leaderElection.leaseDuration: Invalid value: "15s": must be greater than `RenewDeadline`'],
        ),
        (
            "leaderElection: {leaseDuration: 20s, renewDeadline: 25s}",
            ['leaderElection.leaseDuration: Invalid value: "25s": must be greater than `RenewDeadline`'],
        ),
        (
            "leaderElection: {retryPeriod: -1500us, resourceLock: configmaps}",
            [
                'leaderElection.retryPeriod: Invalid value: "-1.5ms": must be greater than zero',
                (
                    'leaderElection.resourceLock: Invalid value: "configmaps": resourceLock value must be'
                    ' "leases"'
                ),
            ],
        ),
        (
            "profiles: [{schedulerName: one}, {schedulerName: one}]",
            ["profiles[1].schedulerName: Duplicate value: {}"],
        ),
        ("profiles: [{schedulerName: one}, {plugins: {}}]", ["profiles[1].schedulerName: Required value"]),
        ("profiles: [{schedulerName: ''}]", ["profiles[0].schedulerName: Required value"]),
        (
            "profiles: [{}, {}]",
            [
                "profiles[0].schedulerName: Required value",
                "profiles[1].schedulerName: Required value",
                "profiles[1].schedulerName: Duplicate value: {}",
            ],
        ),
        (
            "profiles: [{percentageOfNodesToScore: -1}]",
            ["profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
        ),
        (
            "extenders: [{urlPrefix: 'http://e', prioritizeVerb: p}]",
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
        ),
        (
            "extenders: [{bindVerb: b}, {bindVerb: b}]",
            [
                (
                    'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can'
                    " implement bind"
                )
            ],
        ),
        (
            "extenders: [{managedResources: [{name: memory}]}]",
            [
                (
                    'extenders[0].managedResources[0].name: Invalid value: "memory": is an invalid extended'
                    " resource name"
                )
            ],
        ),
        (
            "extenders: [{managedResources: [{name: a.b/c}]}, {managedResources: [{name: a.b/c}]}]",
            [
                (
                    'extenders[1].managedResources[0].name: Invalid value: "a.b/c": duplicate extender'
                    " managed resource name"
                )
            ],
        ),
    ],
)
def test_violation(body, errors):
    """A violated rule names field, value and rule."""
    assert errors == errors_of(file(body))


def test_all_violations_in_order():
    """All violations are reported, and joined in one line."""
    with pytest.raises(ValidationError) as error:
        load(file("parallelism: -1\nclientConnection: {burst: -1}"))

    assert (
        "[clientConnection.burst: Invalid value: -1: must be non-negative,"
        " parallelism: Invalid value: -1: should be an integer value greater than zero]"
    ) == str(error.value)


def test_no_election_no_rules():
    """Without leader election its settings are not looked at."""
    assert load(file("leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: x}"))


@pytest.mark.parametrize("point", ["filter", "preFilter", "postBind", "queueSort", "permit"])
def test_removed_plugin(point):
    """A plugin that was removed is refused by name where points are looked at."""
    text = profile_file(plugins={point: {"enabled": names("CinderLimits")}})

    expected = (
        f'profiles[0].plugins.{point}.enabled[0]: Invalid value: "CinderLimits": was invalid in version "v1"'
        ' (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
    )
    assert [expected] == errors_of(text)


@pytest.mark.parametrize("point", ["multiPoint", "placementGenerate", "placementScore"])
def test_removed_plugin_at_another_point(point):
    """At other points a removed plugin is just unknown."""
    with pytest.raises(BuildError, match="does not exist"):
        load(profile_file(plugins={point: {"enabled": names("EBSLimits")}}))


def test_removed_plugin_disabled():
    """A removed plugin may be disabled."""
    assert load(profile_file(plugins={"multiPoint": {"disabled": names("GCEPDLimits")}}))


def sorted_profiles(first, second):
    return file({"profiles": [{"schedulerName": "a", **first}, {"schedulerName": "b", **second}]})


PRIORITY = {"plugins": {"queueSort": {"enabled": names("PrioritySort")}}}
SORT_SET = '{"Enabled":[{"Name":"PrioritySort","Weight":0}],"Disabled":null}'
FIFO = {"pluginConfig": [{"name": "PrioritySort", "args": {"mode": "fifo"}}]}
LIFO = {"pluginConfig": [{"name": "PrioritySort", "args": {"mode": "lifo"}}]}


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        (
            {},
            PRIORITY,
            f"profiles[1].plugins.queueSort: Invalid value: {SORT_SET}: must be the same for all profiles",
        ),
        (
            PRIORITY,
            {},
            (
                'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":null}:'
                " must be the same for all profiles"
            ),
        ),
        (
            {**PRIORITY, **FIFO},
            {**PRIORITY, **LIFO},
            (
                'profiles[1].pluginConfig.args: Invalid value: {"mode":"lifo"}: queueSort must be the same'
                " for all profiles"
            ),
        ),
        (
            PRIORITY,
            {**PRIORITY, **LIFO},
            (
                'profiles[1].pluginConfig.args: Invalid value: {"mode":"lifo"}: queueSort must be the same'
                " for all profiles"
            ),
        ),
    ],
)
def test_queue_sort_as_written(first, second, error):
    """The queue sort is compared as it is written, with its arguments."""
    assert [error] == errors_of(sorted_profiles(first, second))


@pytest.mark.parametrize(("first", "second"), [({}, LIFO), (FIFO, LIFO), ({**PRIORITY, **FIFO}, PRIORITY)])
def test_queue_sort_in_force(first, second):
    """What comparing the text misses is found when the profiles are built."""
    with pytest.raises(BuildError) as error:
        load(sorted_profiles(first, second))

    assert 'initializing profiles: different queue sort plugin args for profile "b"' == str(error.value)


def test_two_queue_sorts():
    """The first profile's queue sort is counted."""
    text = profile_file(plugins={"queueSort": {"enabled": names("PrioritySort", "PrioritySort")}})

    expected = (
        "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"
    )
    assert [expected] == errors_of(text)


def spread(**changes):
    constraint = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway", **changes}
    return {"defaultingType": "List", "defaultConstraints": [constraint]}


def affinity(**requirement):
    requirement = {"key": "pool", "operator": "In", "values": ["a"], **requirement}
    terms = [{}, {"matchExpressions": [requirement]}]
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


REQUIRED = (
    "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0]"
)
BAD_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("plugin", "args", "errors"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            [f"minCandidateNodesPercentage: Invalid value: 101: {PERCENT}"],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": -1},
            ["minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 500},
            [f"hardPodAffinityWeight: Invalid value: 500: {PERCENT}"],
        ),
        (
            "JointPlacement",
            {"maxPods": 65, "maxBranches": 0, "timeLimit": "11s"},
            [
                "maxPods: Invalid value: 65: not in valid range [2, 64]",
                "maxBranches: Invalid value: 0: not in valid range [1, 100000]",
                'timeLimit: Invalid value: "11s": not in valid range (0s, 10s]',
            ],
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu"}]},
            ["resources[0].weight: Invalid value: 2: must be 1", 'resources[1].name: Duplicate value: "cpu"'],
        ),
        (
            "PodTopologySpread",
            {**spread(), "defaultingType": "System"},
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "<b>"},
            ['defaultingType: Unsupported value: "\\u003cb\\u003e": supported values: "System", "List"'],
        ),
        (
            "PodTopologySpread",
            spread(maxSkew=0),
            ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
        ),
        (
            "PodTopologySpread",
            spread(topologyKey=""),
            ["defaultConstraints[0].topologyKey: Required value: can not be empty"],
        ),
        (
            "PodTopologySpread",
            spread(topologyKey="a b"),
            [f'defaultConstraints[0].topologyKey: Invalid value: "a b": {BAD_NAME}'],
        ),
        (
            "PodTopologySpread",
            spread(whenUnsatisfiable=""),
            ["defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
        ),
        (
            "PodTopologySpread",
            spread(labelSelector={}),
            [
                (
                    "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector,"
                    " as they deduced for each pod"
                )
            ],
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            [
                (
                    "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a"
                    " negative value"
                )
            ],
        ),
        (
            "VolumeBinding",
            {"shape": []},
            [
                (
                    "shape: Invalid value: []: unexpected field `shape`, remove it or turn on the feature"
                    " gate StorageCapacityScoring"
                )
            ],
        ),
        (
            "DynamicResources",
            {"filterTimeout": "-5s"},
            ['filterTimeout: Invalid value: "-5s": must be zero or positive'],
        ),
        (
            "DynamicResources",
            {"bindingTimeout": "500ms"},
            ['bindingTimeout: Invalid value: "500ms": must be at least 1 second'],
        ),
        ("NodeResourcesFitArgs", None, ["Invalid value: null: has to match plugin args"]),
        (
            "NodeAffinity",
            affinity(operator="Equals"),
            [
                (
                    f'{REQUIRED}.operator: Unsupported value: "Equals": supported values: "In", "NotIn",'
                    ' "Exists", "DoesNotExist", "Gt", "Lt"'
                )
            ],
        ),
        (
            "NodeAffinity",
            affinity(values=[]),
            [f"{REQUIRED}.values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"],
        ),
        (
            "NodeAffinity",
            affinity(operator="Gt", values=["x", "2"]),
            [
                (
                    f"{REQUIRED}.values: Invalid value: [\"x\",\"2\"]: for 'Gt', 'Lt' operators, exactly one"
                    " value is required"
                ),
                (
                    f"{REQUIRED}.values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be"
                    " an integer"
                ),
            ],
        ),
        (
            "NodeAffinity",
            affinity(key="/"),
            [
                (
                    f'{REQUIRED}.key: Invalid value: "/": prefix part must be non-empty; name part must be'
                    f" non-empty; {BAD_NAME}"
                )
            ],
        ),
        (
            "NodeAffinity",
            affinity(values=["x" * 64]),
            [f'{REQUIRED}.values[0][pool]: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
        ),
    ],
)
def test_args(plugin, args, errors):
    """Each argument's rule, with its path and wording."""
    place = "profiles[0].pluginConfig[0].args"
    joint = ": " if plugin == "NodeResourcesFitArgs" else "."

    assert [f"{place}{joint}{error}" for error in errors] == errors_of(args_file(plugin, args))


def test_args_of_a_disabled_plugin():
    """Arguments are checked whether or not their plugin is enabled, but for NodeResourcesFit."""
    off = {"multiPoint": {"disabled": names("VolumeBinding", "NodeResourcesFit")}}
    volumes = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": -1}}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Whatever"}}}

    assert errors_of(profile_file(plugins=off, pluginConfig=[volumes]))
    assert load(profile_file(plugins=off, pluginConfig=[fit]))


def strategy(**fields):
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", **fields}}


def shape(*points):
    return {"shape": [{"utilization": utilization, "score": score} for utilization, score in points]}


STRATEGIES = '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
RATIO = "scoringStrategy.requestedToCapacityRatio"


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            {"scoringStrategy": {}},
            f'scoringStrategy.type: Unsupported value: "": supported values: {STRATEGIES}',
        ),
        (
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 500}]}},
            (
                "scoringStrategy.resources[0].weight: Invalid value: 500: resource weight of cpu not in"
                " valid range (0, 100]"
            ),
        ),
        (strategy(), f"{RATIO}: Required value: must be specified when type is RequestedToCapacityRatio"),
        (
            strategy(requestedToCapacityRatio={}),
            f"{RATIO}.shape: Required value: at least one point must be specified",
        ),
        (
            strategy(type="LeastAllocated", requestedToCapacityRatio={}),
            f"{RATIO}: Forbidden: must be nil when type is not RequestedToCapacityRatio",
        ),
        (
            strategy(requestedToCapacityRatio=shape((9, 1), (9, 11))),
            (
                f"[{RATIO}.shape[1].utilization: Invalid value: 9: values must be sorted in increasing"
                f" order, {RATIO}.shape[1].score: Invalid value: 11: not in valid range [0, 10]]"
            ),
        ),
        (
            {"ignoredResourceGroups": ["a/ b"]},
            (
                '[ignoredResourceGroups[0]: Invalid value: "a/ b": resource group name can\'t contain'
                f" '/', ignoredResourceGroups[0]: Invalid value: \"a/ b\": {BAD_NAME}]"
            ),
        ),
    ],
)
def test_fit_args(args, error):
    """NodeResourcesFit's arguments are checked when it is built, with paths that begin at them."""
    with pytest.raises(BuildError) as raised:
        load(args_file("NodeResourcesFit", args))

    assert f'{BUILDING}initializing plugin "NodeResourcesFit": {error}' == str(raised.value)


def test_storage_scoring():
    """With its gate on a shape is checked and defaulted."""
    gates = parse_feature_gates(["StorageCapacityScoring=true"])

    expected = [f"profiles[0].pluginConfig[0].args.shape[0].utilization: Invalid value: 101: {PERCENT}"]
    assert expected == errors_of(args_file("VolumeBinding", shape((101, 5))), gates=gates)


def test_timeouts_without_their_gates():
    """With their gates off the timeouts of device allocation must not be written."""
    gates = parse_feature_gates(["DRASchedulerFilterTimeout=false,DRADeviceBindingConditions=false"])
    text = args_file("DynamicResources", {"filterTimeout": "5s", "bindingTimeout": "5s"})

    place = "profiles[0].pluginConfig[0].args"
    off = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
    assert [
        f"{place}.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
        f"{place}.bindingTimeout: Forbidden: {off}",
    ] == errors_of(text, gates=gates)
    assert DynamicResourcesArgs() == load(file(), gates=gates).profiles[0].args["DynamicResources"]


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("cpu", 0),
        ("a.b/c_d.e", 0),
        ("a/b/c", 1),
        ("", 2),
        ("/x", 1),
        ("a/", 2),
        ("A.b/c", 1),
        ("x" * 63, 0),
        ("x" * 64, 1),
        ("é", 1),
        ("a" * 254 + "/b", 1),
        ("-a", 1),
        ("a\n", 1),
    ],
)
def test_qualified_name(name, problems):
    """A qualified name has an optional DNS subdomain and a short name."""
    assert problems == len(qualified_name_problems(name))


@pytest.mark.parametrize(
    ("value", "problems"), [("", 0), ("a_b", 0), ("a b", 1), ("x" * 64, 1), ("-" * 64, 2), ("a\n", 1)]
)
def test_label_value(value, problems):
    """A label's value may be empty and is short."""
    assert problems == len(label_value_problems(value))


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("example.com/gpu", True),
        ("cpu", False),
        ("kubernetes.io/x", False),
        ("a.kubernetes.io/x", False),
        ("requests.example.com/x", False),
        ("a" * 245 + "/x", False),
    ],
)
def test_extended_resource(name, extended):
    """An extended resource has a prefix that is not Kubernetes' own."""
    assert extended == is_extended_resource(name)
