"""Feature gates: defaults by release, settings, and what they need."""

import re

import pytest

from berth.config import FeatureGateError, FeatureGates, parse_feature_gates
from berth.config.feature_gates import gate_spec, is_known, parse_versions
from berth.config.releases.gate_history import FOLDED, HISTORY, NEEDS
from berth.config.releases.release import RELEASES, effective


def error_of(*values, **options):
    with pytest.raises(FeatureGateError) as error:
        parse_feature_gates(values, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("gate", "enabled"),
    [
        ("DynamicResourceAllocation", True),
        ("NodeDeclaredFeatures", True),
        ("SchedulerAsyncAPICalls", False),
        ("GangScheduling", False),
        ("StorageCapacityScoring", False),
        ("DRASchedulerFilterTimeout", True),
        ("AllAlpha", False),
    ],
)
def test_default(gate, enabled):
    """Without settings a gate has its release's default."""
    assert enabled == FeatureGates().enabled(gate)


def test_default_of_an_older_release():
    """An emulated release brings its own defaults; what came later is off."""
    old = FeatureGates(version=effective(emulated=(1, 34)))

    assert (False, False, True) == (
        old.enabled("NodeDeclaredFeatures"),
        old.enabled("GangScheduling"),
        old.enabled("SchedulerAsyncPreemption"),
    )


def test_settings():
    """Settings may be repeated, carry the component's name, and the last one counts."""
    gates = parse_feature_gates(["GenericWorkload=true, kube:GangScheduling=t", "GenericWorkload=1"])

    assert {"GenericWorkload": True, "GangScheduling": True} == gates.chosen


def test_all_of_a_stage():
    """All gates of a stage are switched at once; single settings win."""
    gates = parse_feature_gates(["AllAlpha=true,GangScheduling=false,WorkloadAwarePreemption=false"])

    assert (True, False) == (gates.enabled("GenericWorkload"), gates.enabled("GangScheduling"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Nope=true", "unrecognized feature gate: Nope"),
        ("GangScheduling", "missing bool value for GangScheduling"),
        (
            "GangScheduling=yes",
            'invalid value of GangScheduling=yes, err: strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        (
            "DRAAdminAccess=false",
            "cannot set feature gate DRAAdminAccess to false, feature is locked to true",
        ),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        ("other:GangScheduling=true", "component not registered: other"),
    ],
)
def test_wrong_setting(value, message):
    """A wrong setting is reported in kube-scheduler's words."""
    assert message == error_of(value)


def test_needs_in_both_directions():
    """A gate can't be switched off while another one that needs it is left on."""
    needing = {
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
        "ExtendWebSocketsToKubelet",
    }

    with pytest.raises(FeatureGateError) as error:
        parse_feature_gates(["NodeDeclaredFeatures=false"])

    assert needing == {message.split()[0] for message in error.value.messages}


def test_gate_from_the_future():
    """A gate that an emulated release does not have yet can't be set."""
    assert (
        "cannot set feature gate GangScheduling to true, feature is PreAlpha at emulated version 1.33, "
        "min compatibility version 1.32"
    ) == error_of("GangScheduling=true", version=effective(emulated=(1, 33)))


@pytest.mark.parametrize(
    ("emulated", "least", "version"),
    [
        ((), (), effective((1, 37), (1, 37), (1, 36))),
        (("1.35",), (), effective((1, 37), (1, 35), (1, 34))),
        (("kube=1.34.0",), (), effective((1, 37), (1, 34), (1, 33))),
        ((), ("1.37",), effective((1, 37), (1, 37), (1, 37))),
    ],
)
def test_versions(emulated, least, version):
    """One of the last four releases can be emulated; the oldest to get along with is the one before it."""
    assert version == parse_versions((1, 37), emulated, least)


@pytest.mark.parametrize(
    ("emulated", "least", "message"),
    [
        ("1.32", (), "emulation version 1.32 is not between [1.33, 1.36.0]"),
        ("1.37", (), "emulation version 1.37 is not between [1.33, 1.36.0]"),
        ("x", (), 'could not parse "x" as version'),
        ("1.35.1", (), "patch version not allowed, got: kube=1.35.1"),
        ("wardle=1.35", (), "component not registered: wardle"),
        ("1.35", ("1.36",), "minCompatibilityVersion version 1.36 is not between [1.33, 1.35]"),
    ],
)
def test_wrong_versions(emulated, least, message):
    """Other releases can't."""
    with pytest.raises(FeatureGateError) as error:
        parse_versions(emulated=[emulated], min_compatibility=least)

    assert message == str(error.value)


@pytest.mark.parametrize(
    ("release", "gate"),
    [
        ((1, 36), "CompositePodGroup"),
        ((1, 36), "DRAFractionalCapacityRange"),
        ((1, 37), "GangScheduling"),
        ((1, 37), "WorkloadAwarePreemption"),
        ((1, 37), "SidecarContainers"),
        ((1, 38), "DynamicResourceAllocation"),
        ((1, 38), "MatchLabelKeysInPodAffinity"),
        ((1, 38), "PodSchedulingReadiness"),
    ],
)
@pytest.mark.parametrize("value", ["true", "false"])
def test_a_gate_that_a_release_does_not_have(release, gate, value):
    """It is unknown, to whatever it is set, and whatever release is emulated."""
    version = effective(release, (1, 35))

    assert f"unrecognized feature gate: {gate}" == error_of(f"{gate}={value}", version=version)


def test_what_a_removed_gate_stands_for():
    """Its behaviour is that of the gate it was folded into, or on for good."""
    version = effective((1, 38))

    for gate, into in FOLDED.items():
        assert (True, False) == tuple(FeatureGates({into: on}, version).enabled(gate) for on in (True, False))
    assert FeatureGates(version=version).enabled("DynamicResourceAllocation")


@pytest.mark.parametrize(("least", "on"), [((1, 36), False), ((1, 37), True)])
def test_a_default_that_goes_by_the_oldest_release_beside(least, on):
    """DRAFractionalCapacityRange is on only where no older component has to get along with it."""
    gates = parse_feature_gates([], effective((1, 37), min_compatibility=least))

    assert on == gates.enabled("DRAFractionalCapacityRange")


@pytest.mark.parametrize("release", RELEASES)
def test_each_gate_set_both_ways(release):
    """Set alone, a gate is taken, or refused in upstream's words: locked, or without what it needs."""
    version = effective(release)
    for gate in (gate for gate in HISTORY if is_known(gate, release) and gate not in {"AllAlpha", "AllBeta"}):
        spec = gate_spec(gate, version)
        for value in (True, False):
            setting = f"{gate}={'true' if value else 'false'}"
            try:
                assert value == parse_feature_gates([setting], version).enabled(gate)
            except FeatureGateError as error:
                for message in error.messages:
                    assert message in reasons(gate, value, spec) or "but depends on features" in message


def reasons(gate, value, spec):
    """Why a gate may be refused on its own."""
    words = {True: "true", False: "false"}
    locked = f"cannot set feature gate {gate} to {words[value]}, feature is locked to {words[spec.default]}"
    return (locked,) if spec.locked and spec.default != value else ()


def test_table():
    """Every line of the table can be read, releases rise, and needs name gates."""
    for name, history in HISTORY.items():
        releases = [tuple(map(int, re.split("[./]", step.split()[0]))) for step in history.split("; ")]
        assert sorted(releases) == releases, name
        stage = gate_spec(name, effective(RELEASES[-1], min_compatibility=RELEASES[-1])).stage
        assert stage in {"Alpha", "Beta", "GA", "Deprecated"}, name
    assert {*NEEDS, *(need for needs in NEEDS.values() for need in needs)} <= HISTORY.keys()
    assert {*FOLDED, *FOLDED.values()} <= HISTORY.keys()


def test_defaults_need_nothing():
    """The defaults of every release, emulating each that it can, meet all needs."""
    for release in RELEASES:
        for back in range(4):
            assert parse_feature_gates([], effective(release, (1, release[1] - back)))
