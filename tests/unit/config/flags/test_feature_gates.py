"""Feature gates: defaults by release, settings, and what they need."""

import pytest

from berth.config import FeatureGateError, FeatureGates, parse_feature_gates
from berth.config.flags.feature_gate_table import HISTORY, NEEDS
from berth.config.flags.feature_gates import gate_spec, parse_emulated_version


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
    old = FeatureGates(release=(1, 34))

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
    assert "feature is PreAlpha at emulated version 1.33" in error_of("GangScheduling=true", release=(1, 33))


@pytest.mark.parametrize(
    ("values", "release"), [((), (1, 36)), (("1.35",), (1, 35)), (("kube=1.33.0",), (1, 33))]
)
def test_emulated_version(values, release):
    """One of the last four releases can be emulated."""
    assert release == parse_emulated_version(values)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1.32", "emulation version 1.32 is not between [1.33, 1.36.0]"),
        ("1.37", "emulation version 1.37 is not between [1.33, 1.36.0]"),
        ("x", 'could not parse "x" as version'),
        ("1.35.1", "patch version not allowed, got: kube=1.35.1"),
        ("wardle=1.35", "component not registered: wardle"),
    ],
)
def test_wrong_emulated_version(value, message):
    """Other releases can't."""
    with pytest.raises(FeatureGateError) as error:
        parse_emulated_version([value])

    assert message == str(error.value)


def test_table():
    """Every line of the table can be read, releases rise, and needs name gates."""
    for name, history in HISTORY.items():
        releases = [tuple(map(int, step.split()[0].split("."))) for step in history.split("; ")]
        assert sorted(releases) == releases, name
        assert gate_spec(name).stage in {"Alpha", "Beta", "GA", "Deprecated"}, name
    assert {*NEEDS, *(need for needs in NEEDS.values() for need in needs)} <= HISTORY.keys()


def test_defaults_need_nothing():
    """The defaults of every release that can be emulated meet all needs."""
    for minor in range(33, 37):
        assert parse_feature_gates([], (1, minor))
