"""Which plugins run where, in which order and with which weight: the examples and the odd rules."""

import pytest

from berth.config import BuildError, ExtensionPoint, FeatureGates, load, parse_feature_gates
from berth.config.releases.release import effective
from tests.unit.config.files import (
    BUILDING,
    DEFAULTS,
    changed,
    file,
    names,
    plugins_file,
    points,
    profile_file,
    shown,
)

FILTERS = DEFAULTS["filter"]
SCORES = DEFAULTS["score"]
STAR = names("*")


def without(plugins, *dropped):
    return [plugin for plugin in plugins if plugin.split("=")[0] not in dropped]


def test_defaults():
    """A file that names no plugins gets the default list at every point."""
    assert DEFAULTS == points(file())
    assert {
        "preEnqueue": ["SchedulingGates", "DynamicResources", "DefaultPreemption"],
        "queueSort": ["PrioritySort"],
        "postFilter": ["DynamicResources", "DefaultPreemption"],
        "reserve": ["VolumeBinding", "DynamicResources"],
        "permit": [],
        "preBind": ["VolumeBinding", "DynamicResources"],
        "bind": ["DefaultBinder"],
        "postBind": [],
        "placementGenerate": [],
        "placementScore": ["NodeResourcesFit=1"],
    }.items() <= DEFAULTS.items()
    assert [
        "TaintToleration=3",
        "NodeAffinity=2",
        "NodeResourcesFit=1",
        "VolumeBinding=1",
        "PodTopologySpread=2",
        "InterPodAffinity=2",
        "DynamicResources=2",
        "NodeResourcesBalancedAllocation=1",
        "ImageLocality=1",
    ] == SCORES


def test_weights_under_score_and_multi_point():
    """A weight under multiPoint keeps the place, one under score moves to the front; a missing one is 1."""
    text = plugins_file(
        multiPoint={"enabled": names(("InterPodAffinity", 6), ("NodeResourcesFit", 3))},
        score={"enabled": names(("ImageLocality", 9), "NodeAffinity")},
    )

    assert {
        "score": [
            "ImageLocality=9",
            "NodeAffinity=1",
            "TaintToleration=3",
            "NodeResourcesFit=3",
            "VolumeBinding=1",
            "PodTopologySpread=2",
            "InterPodAffinity=6",
            "DynamicResources=2",
            "NodeResourcesBalancedAllocation=1",
        ],
        "placementScore": ["NodeResourcesFit=3"],
    } == changed(text)


def test_switching_off():
    """Off under multiPoint is off everywhere, off at a point is off there, and unknown names do no harm."""
    text = plugins_file(
        multiPoint={"disabled": names("ImageLocality", "NodeDeclaredFeatures", "NoSuchPlugin")},
        filter={"disabled": names("VolumeZone")},
        score={"disabled": names("VolumeBinding", "PodTopologySpread")},
    )

    assert {
        "preFilter": without(DEFAULTS["preFilter"], "NodeDeclaredFeatures"),
        "filter": without(FILTERS, "NodeDeclaredFeatures", "VolumeZone"),
        "score": without(SCORES, "ImageLocality", "VolumeBinding", "PodTopologySpread"),
    } == changed(text)


def test_star_at_points():
    """A star at a point leaves that point its own list only."""
    text = plugins_file(
        preScore={"disabled": STAR, "enabled": names("TaintToleration")},
        score={"disabled": STAR, "enabled": names(("TaintToleration", 2), "ImageLocality")},
        postFilter={"disabled": STAR},
    )

    assert {
        "preScore": ["TaintToleration"],
        "score": ["TaintToleration=2", "ImageLocality=1"],
        "postFilter": [],
    } == changed(text)


def test_star_under_multi_point():
    """A star under multiPoint drops the defaults with their weights; the written order is kept."""
    listed = names(
        "NodeResourcesFit", ("TaintToleration", 5), "VolumeBinding", "DefaultBinder", "PrioritySort"
    )
    text = plugins_file(
        multiPoint={"disabled": STAR, "enabled": listed}, filter={"disabled": names("VolumeBinding")}
    )

    assert {
        "preEnqueue": [],
        "preFilter": ["NodeResourcesFit", "VolumeBinding"],
        "filter": ["NodeResourcesFit", "TaintToleration"],
        "postFilter": [],
        "preScore": ["NodeResourcesFit", "TaintToleration", "VolumeBinding"],
        "score": ["NodeResourcesFit=1", "TaintToleration=5", "VolumeBinding=1"],
        "reserve": ["VolumeBinding"],
        "preBind": ["VolumeBinding"],
    } == changed(text)


def test_three_parts():
    """A point begins with what it overrides, goes on with multiPoint's, and ends with what is its own."""
    text = plugins_file(
        multiPoint={"disabled": names("NodeName")},
        filter={
            "enabled": names("NodeName", "NodePorts", "NodeUnschedulable", "TaintToleration"),
            "disabled": names("TaintToleration"),
        },
        score={
            "enabled": names(("NodeResourcesBalancedAllocation", 4), ("TaintToleration", 3)),
            "disabled": names("TaintToleration"),
        },
    )

    middle = without(FILTERS, "NodeName", "NodePorts", "NodeUnschedulable", "TaintToleration")
    rest = without(SCORES, "NodeResourcesBalancedAllocation", "TaintToleration")
    assert {
        "filter": ["NodePorts", "NodeUnschedulable", *middle, "NodeName", "TaintToleration"],
        "score": ["NodeResourcesBalancedAllocation=4", *rest, "TaintToleration=3"],
    } == changed(text)


def test_which_weight_wins():
    """A point's own weight beats multiPoint's; where nothing is scored a weight only re-orders."""
    text = plugins_file(
        multiPoint={"enabled": names(("NodeResourcesFit", 4), ("NodeAffinity", 7))},
        score={"enabled": names(("NodeResourcesFit", 8)), "disabled": names("NodeAffinity")},
        filter={"enabled": names(("NodePorts", 50))},
    )

    assert {
        "filter": ["NodePorts", *without(FILTERS, "NodePorts")],
        "score": ["NodeResourcesFit=8", *without(SCORES, "NodeResourcesFit", "NodeAffinity")],
        "placementScore": ["NodeResourcesFit=4"],
    } == changed(text)


GROUPS = {
    "preEnqueue": [*DEFAULTS["preEnqueue"], "GangScheduling"],
    "placementGenerate": ["TopologyPlacementGenerator"],
}


def test_plugins_beyond_the_defaults():
    """Every in-tree plugin can be named, whatever the gates say, and comes last."""
    text = plugins_file(
        multiPoint={"enabled": names("GangScheduling", ("PodGroupPodsCount", 2))},
        placementGenerate={"enabled": names("TopologyPlacementGenerator")},
    )

    placed = ["NodeResourcesFit=1", "PodGroupPodsCount=2"]
    assert {**GROUPS, "permit": ["GangScheduling"], "placementScore": placed} == changed(text)


def test_plugins_by_gates():
    """Gates add to the default list, which can be overridden and switched off like the rest of it."""
    gates = parse_feature_gates(
        [
            "GenericWorkload=true,GangScheduling=true",
            "TopologyAwareWorkloadScheduling=true,StorageCapacityScoring=1",
        ]
    )
    text = plugins_file(
        multiPoint={"enabled": names(("PodGroupPodsCount", 6))}, permit={"disabled": names("GangScheduling")}
    )

    placed = ["NodeResourcesFit=1", "PodGroupPodsCount=6"]
    assert {**GROUPS, "placementScore": placed} == changed(text, gates=gates)
    shape = load(text, gates=gates).profiles[0].args["VolumeBinding"].shape
    assert [(0, 10), (100, 0)] == [(point.utilization, point.score) for point in shape]


def test_gate_takes_a_default_away():
    """A release in which a gate was off has a shorter default list."""
    old = FeatureGates(version=effective(emulated=(1, 35)))

    assert "NodeDeclaredFeatures" not in points(None, gates=old)["filter"]


def test_smallest_profile():
    """A queue sort and a binder are all that a profile needs."""
    text = plugins_file(
        multiPoint={"disabled": STAR},
        queueSort={"enabled": names("PrioritySort")},
        bind={"enabled": names("DefaultBinder")},
    )

    found = points(text)
    assert {"queueSort": ["PrioritySort"], "bind": ["DefaultBinder"]} == {p: v for p, v in found.items() if v}


def test_shared_queue_sort():
    """Profiles may share a queue sort through an alias and differ in all else."""
    text = file(
        """
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort: &sort {enabled: [{name: PrioritySort}]}
- schedulerName: batch
  plugins:
    queueSort: *sort
    multiPoint:
      disabled: [{name: DefaultPreemption}]
      enabled: [{name: DynamicResources}]
- schedulerName: storage
  plugins:
    queueSort: *sort
    score: {enabled: [{name: VolumeBinding, weight: 12}]}
    reserve: {enabled: [{name: DynamicResources}]}
"""
    )

    default, batch, storage = map(shown, load(text).profiles)
    assert DEFAULTS == default
    assert ["SchedulingGates", "DynamicResources"] == batch["preEnqueue"]
    assert [plugin.replace("Resources=2", "Resources=1") for plugin in SCORES] == batch["score"]
    assert ["VolumeBinding=12", *without(SCORES, "VolumeBinding")] == storage["score"]
    assert ["DynamicResources", "VolumeBinding"] == storage["reserve"]


@pytest.mark.parametrize(
    ("sets", "error"),
    [
        ({"score": {"enabled": names("NodeName")}}, 'plugin "NodeName" does not extend ScorePlugin plugin'),
        ({"score": {"enabled": names("Nodeaffinity")}}, 'ScorePlugin "Nodeaffinity" does not exist'),
        ({"bind": {"enabled": names("")}}, 'BindPlugin "" does not exist'),
        (
            {"score": {"enabled": names("NodeAffinity", "NodeAffinity")}},
            'plugin "NodeAffinity" already registered as "ScorePlugin"',
        ),
        (
            {"multiPoint": {"enabled": names("TaintToleration", "TaintToleration")}},
            'plugin "TaintToleration" already registered as "FilterPlugin"',
        ),
        ({"multiPoint": {"enabled": names("CinderLimits")}}, 'PreFilterPlugin "CinderLimits" does not exist'),
        (
            {"multiPoint": {"enabled": names("Missing")}, "preFilter": {"disabled": STAR}},
            'FilterPlugin "Missing" does not exist',
        ),
        (
            {
                "multiPoint": {"enabled": names("Missing")},
                **{point.value: {"disabled": STAR} for point in ExtensionPoint},
            },
            'PreFilterPlugin "Missing" does not exist',
        ),
        # The order in which points are checked decides between two problems.
        (
            {"preEnqueue": {"enabled": names("A")}, "permit": {"enabled": names("B")}},
            'PermitPlugin "B" does not exist',
        ),
        (
            {"multiPoint": {"disabled": names("DefaultBinder")}},
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            {"multiPoint": {"disabled": STAR, "enabled": names("DefaultBinder")}},
            (
                'only one queue sort plugin required for profile with scheduler name "default-scheduler",'
                " but got 0"
            ),
        ),
        (
            {"score": {"enabled": names(("NodeAffinity", -1))}},
            "score plugins: total score of Score plugins could overflow",
        ),
        (
            {"placementScore": {"enabled": names(("NodeResourcesFit", -1), "PodGroupPodsCount")}},
            "placement score plugins: total score of Score plugins could overflow",
        ),
    ],
)
def test_refused(sets, error):
    """A profile that can't be put together names the first problem."""
    with pytest.raises(BuildError) as raised:
        load(plugins_file(**sets))

    assert BUILDING + error == str(raised.value)


@pytest.mark.parametrize(
    ("sets", "score"),
    [
        # Sums that are never below zero before the last one pass.
        ({"score": {"enabled": names(("NodeAffinity", 9), ("ImageLocality", -9))}}, "ImageLocality=-9"),
        ({"multiPoint": {"enabled": names(("ImageLocality", -20))}}, "ImageLocality=-20"),
        ({"score": {"enabled": names(("NodeResourcesFit", 2147483647))}}, "NodeResourcesFit=2147483647"),
    ],
)
def test_odd_weights(sets, score):
    """Negative and huge weights are legal as long as sums stay in range."""
    assert score in points(plugins_file(**sets))["score"]


def test_negative_total_of_a_disabled_plugin():
    """A plugin that is disabled at score still counts in the check for overflow."""
    text = plugins_file(
        score={"disabled": names("TaintToleration")}, multiPoint={"enabled": names(("TaintToleration", -1))}
    )

    with pytest.raises(BuildError, match="could overflow"):
        load(text)


def test_unnoticed_repetition():
    """A repetition under multiPoint goes unnoticed where every point overrides or disables the plugin."""
    text = plugins_file(
        multiPoint={"enabled": names("ImageLocality", "ImageLocality")},
        score={"disabled": names("ImageLocality")},
    )

    assert {"score": without(SCORES, "ImageLocality")} == changed(text)


def test_disabled_and_enabled_again():
    """A plugin that multiPoint drops and names again goes to the end."""
    text = plugins_file(multiPoint={"disabled": names("NodePorts"), "enabled": names("NodePorts")})

    assert [*without(FILTERS, "NodePorts"), "NodePorts"] == points(text)["filter"]


def test_the_last_of_repeated_defaults_counts_as_used():
    """Of a default plugin's repeated entries the last takes the default's place, the others are appended."""
    text = plugins_file(
        multiPoint={"enabled": names(("ImageLocality", 5), ("ImageLocality", 7))},
        score={"enabled": names("ImageLocality")},
    )

    assert "ImageLocality=1" == points(text)["score"][0]


OUT_OF_TREE = {"Shop": frozenset({ExtensionPoint.FILTER, ExtensionPoint.SCORE})}


def test_out_of_tree_plugin():
    """An out-of-tree plugin is known by the points that it serves; its arguments stay plain JSON."""
    text = profile_file(
        plugins={"multiPoint": {"enabled": names(("Shop", 4))}},
        pluginConfig=[{"name": "Shop", "args": {"a": [1, 2.5, None]}}],
    )

    (profile,) = load(text, out_of_tree=OUT_OF_TREE).profiles
    assert {"filter": [*FILTERS, "Shop"], "score": [*SCORES, "Shop=4"]} == changed(
        text, out_of_tree=OUT_OF_TREE
    )
    assert {"a": [1, 2.5, None]} == profile.args["Shop"]
    with pytest.raises(BuildError, match='PreFilterPlugin "Shop" does not exist'):
        load(text)


def test_out_of_tree_plugin_at_another_point():
    """An out-of-tree plugin can't be named at a point that it does not serve."""
    with pytest.raises(BuildError, match='plugin "Shop" does not extend BindPlugin plugin'):
        load(plugins_file(bind={"enabled": names("Shop")}), out_of_tree=OUT_OF_TREE)
