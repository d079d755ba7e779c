"""Flags: syntax, mistakes, and how they stand to the file."""

import pytest

from berth.config import Duration, FeatureGateError, FlagError, ValidationError
from berth.config.command_line import load_with_flags, parse_flags, read_settings, usage
from berth.config.errors import ReleaseError
from berth.config.flags.flag_table import FLAGS, Effect, Flag, FlagKind
from tests.unit.config.files import file, names, plugins_file


def given(*arguments):
    options = parse_flags(arguments)
    return {name: options.value(name) for name in options.given}


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["--config=a"], {"config": "a"}),
        (["--config", "a"], {"config": "a"}),
        (["--config="], {"config": ""}),
        (["--leader_elect"], {"leader-elect": True}),
        (["--leader-elect=F"], {"leader-elect": False}),
        (["-v3"], {"v": 3}),
        (["-v=3"], {"v": 3}),
        (["-v", "3"], {"v": 3}),
        (["--v=0x10"], {"v": 16}),
        (["--secure-port=010"], {"secure-port": 8}),
        (["--secure-port=1", "--secure-port=2"], {"secure-port": 2}),
        (["--kube-api-qps=1.5"], {"kube-api-qps": 1.5}),
        (["--leader-elect-lease-duration=1m"], {"leader-elect-lease-duration": Duration.of_seconds(60)}),
        (["--disabled-metrics=a,b", "--disabled-metrics=c"], {"disabled-metrics": ("a", "b", "c")}),
        (["--bind-address=::1"], {"bind-address": "::1"}),
        (["--version"], {"version": "true"}),
        (["--version=raw"], {"version": "raw"}),
        (["--logging-format=json", "--"], {"logging-format": "json"}),
        (["--master", "--x"], {"master": "--x"}),
    ],
)
def test_syntax(arguments, values):
    """A flag's value is attached or follows; switches stand alone."""
    assert values == given(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port=1"], "unknown flag: --port"),
        (["--config"], "flag needs an argument: --config"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["---x"], "bad flag syntax: ---x"),
        (["--=x"], "bad flag syntax: --=x"),
        (["--leader-elect", "false"], '"berth scheduler" does not take any arguments, got ["false"]'),
        (["--", "a", "b"], '"berth scheduler" does not take any arguments, got ["a" "b"]'),
        (
            ["--leader-elect=maybe"],
            (
                'invalid argument "maybe" for "--leader-elect" flag:'
                ' strconv.ParseBool: parsing "maybe": invalid syntax'
            ),
        ),
        (
            ["--secure-port=x"],
            'invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax',
        ),
        (
            ["--kube-api-burst=2147483648"],
            (
                'invalid argument "2147483648" for "--kube-api-burst" flag:'
                ' strconv.ParseInt: parsing "2147483648": value out of range'
            ),
        ),
        (
            ["--kube-api-qps=1e99"],
            (
                'invalid argument "1e99" for "--kube-api-qps" flag:'
                ' strconv.ParseFloat: parsing "1e99": value out of range'
            ),
        ),
        (
            ["--leader-elect-retry-period=5"],
            'invalid argument "5" for "--leader-elect-retry-period" flag: time: missing unit in duration "5"',
        ),
        (["-vx"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax'),
        (
            ["--bind-address=host"],
            'invalid argument "host" for "--bind-address" flag: failed to parse IP: "host"',
        ),
        (
            ["--logging-format=xml"],
            'invalid argument "xml" for "--logging-format" flag: must be one of text, json',
        ),
        (
            ["--secure-port=65536"],
            "--secure-port 65536 must be between 0 and 65535, inclusive. 0 for turning off secure port",
        ),
        (["--record-most-mib=1"], "--record-most-mib 1 must be between 2 and 1048576, inclusive"),
    ],
)
def test_mistake(arguments, message):
    """A mistake is one line."""
    with pytest.raises(FlagError) as error:
        parse_flags(arguments)

    assert message == str(error.value)


@pytest.mark.parametrize(
    "name",
    ["port", "address", "scheduler-name", "algorithm-provider", "policy-config-file", "lock-object-name"],
)
def test_flags_of_older_releases(name):
    """Flags that are gone upstream are unknown."""
    with pytest.raises(FlagError, match="unknown flag"):
        parse_flags([f"--{name}=x"])


def test_every_flag_has_a_default_of_its_kind():
    """The defaults of the table are what the flags' own syntax gives."""
    kinds = {
        FlagKind.BOOL: bool,
        FlagKind.INT: int,
        FlagKind.INT32: int,
        FlagKind.FLOAT32: float,
        FlagKind.DURATION: Duration,
    }
    for flag in FLAGS:
        expected = tuple if flag.kind is FlagKind.STRINGS else kinds.get(flag.kind, str)
        assert expected is type(flag.default), flag.name


def test_warnings():
    """Flags without effect and flags that a file overrules are accepted with a warning."""
    options = parse_flags(["--config=f", "--kubeconfig=k", "--vmodule=a=1", "--secure-port=1"])

    assert (
        "--kubeconfig is deprecated and ignored, because --config is given",
        "--vmodule has no effect in Berth",
    ) == options.warnings
    assert ("--profiling is deprecated, use --config",) == parse_flags(["--profiling"]).warnings


def test_gates_that_lead_nowhere_are_reported():
    """A gate whose behaviour is missing is accepted, and what then happens is said; by default none is on."""
    options = parse_flags(
        [
            "--feature-gates=DRANodeAllocatableResources=true,DRAWorkloadResourceClaims=true,GenericWorkload=true"
        ]
    )

    reported = "is not covered by Berth yet:"
    unmet = "devices take nothing from the node's allocatable resources"
    assert (f"feature gate DRANodeAllocatableResources {reported} {unmet}",) == options.gate_warnings
    assert () == parse_flags([]).gate_warnings


@pytest.mark.parametrize(
    ("flags", "release"),
    [
        ([], (1, 36)),
        (["--release=1.37"], (1, 37)),
        (["--feature-gates=CompositePodGroup=false"], (1, 37)),
        (["--release=1.38", "--emulated-version=1.36"], (1, 38)),
    ],
)
def test_the_release_that_gates_go_by(flags, release):
    """It is the one that is named, else the oldest whose gates are meant."""
    assert release == parse_flags(flags).gates.version.binary


def test_the_same_command_line_in_another_release():
    """Its gates are read again there, and refused where that release does not have them."""
    options = parse_flags(["--feature-gates=GangScheduling=false"])

    assert not options.gates.enabled("StorageCapacityScoring")
    with pytest.raises(FeatureGateError, match="unrecognized feature gate: GangScheduling"):
        options.at((1, 37))
    assert parse_flags([]).at((1, 37)).gates.enabled("StorageCapacityScoring")


def test_a_release_that_is_not_followed():
    """It is refused, with those that are."""
    with pytest.raises(ReleaseError) as error:
        parse_flags(["--release=1.35"])

    assert 'release "1.35" is none that Berth follows: name one of 1.36, 1.37, 1.38' == str(error.value)


def test_help():
    """Help is asked for, and lists every flag by section."""
    assert parse_flags(["-h", "--nonsense"]).wants_help
    assert parse_flags(["--config=x", "--help"]).wants_help
    text = usage([Flag("mine", FlagKind.STRING, "", "My own.", "mine")])
    assert all(f"--{flag.name}" in text for flag in FLAGS)
    assert "\nMine flags:\n      --mine string\n" in text


def test_extra_flags():
    """A caller may add flags of its own."""
    mine = Flag("mine", FlagKind.INT, 5, "My own.", "mine", effect=Effect.HONOURED)

    assert (5, 6) == (parse_flags([], [mine]).value("mine"), parse_flags(["--mine=6"], [mine]).value("mine"))


def test_gates():
    """Feature gates and the emulated release are part of the command line."""
    assert parse_flags(["--feature-gates=GenericWorkload=true"]).gates.enabled("GenericWorkload")
    assert not parse_flags(["--emulated-version=1.35"]).gates.enabled("NodeDeclaredFeatures")
    with pytest.raises(FeatureGateError):
        parse_flags(["--feature-gates=X=true"])


def test_flags_over_a_file():
    """With a file the election flags that were given win over it; the deprecated ones do nothing."""
    options = parse_flags(
        ["--leader-elect-resource-name=mine", "--leader-elect=false", "--kubeconfig=k", "--kube-api-qps=1"]
    )
    text = file("leaderElection: {resourceName: theirs, resourceNamespace: ns}\nclientConnection: {qps: 7}")

    found = load_with_flags(options, text).configuration
    assert (False, "mine", "ns") == (
        found.leader_election.leader_elect,
        found.leader_election.resource_name,
        found.leader_election.resource_namespace,
    )
    assert ("", 7) == (found.client_connection.kubeconfig, found.client_connection.qps)


def test_flags_over_a_file_are_validated():
    """What flags make of a file is validated."""
    options = parse_flags(["--leader-elect-resource-lock=", "--leader-elect-lease-duration=5s"])

    with pytest.raises(ValidationError) as error:
        load_with_flags(options, file())

    assert (
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        "leaderElection.resourceLock: Required value",
        'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
    ) == error.value.messages


def test_flags_without_a_file():
    """Without a file the deprecated flags count, and the result is not validated again."""
    options = parse_flags(
        ["--kubeconfig=k", "--kube-api-burst=-1", "--profiling=false", "--leader-elect-lease-duration=1s"]
    )

    found = load_with_flags(options, None).configuration
    assert ("k", -1, False, True, Duration.of_seconds(1)) == (
        found.client_connection.kubeconfig,
        found.client_connection.burst,
        found.enable_profiling,
        found.enable_contention_profiling,
        found.leader_election.lease_duration,
    )


def test_named_values():
    """The options that every start needs have names."""
    options = parse_flags(
        [
            "--config=c",
            "--plugins=p",
            "--write-config-to=w",
            "--master=m",
            "--secure-port=0",
            "-v2",
            "--version",
        ]
    )

    assert ("c", "p", "w", "m", 0, 2, "true", "0.0.0.0", 300) == (
        options.config_file,
        options.plugins_file,
        options.write_config_to,
        options.master,
        options.secure_port,
        options.verbosity,
        options.version,
        options.bind_address,
        options.pod_max_in_unschedulable_pods.seconds,
    )


LIST = "apiVersion: berth.dev/v1alpha1\nkind: PluginList\nplugins: [{name: Shop, address: 'localhost:1'}]\n"
SHOP = plugins_file(score={"enabled": names("Shop")})


@pytest.mark.parametrize(
    ("files", "arguments", "sidecars"),
    [
        ({}, [], []),
        ({"c": file()}, ["--config=c"], []),
        ({"c": SHOP, "p": LIST}, ["--config=c", "--plugins=p"], ["Shop"]),
        ({"c": f"{SHOP}---\n{LIST}"}, ["--config=c"], ["Shop"]),
        ({"c": f"{file()}---\n{LIST}", "p": LIST.replace("Shop", "A")}, ["--config=c", "--plugins=p"], ["A"]),
    ],
)
def test_settings(files, arguments, sidecars):
    """A command line's files are read; a list of its own goes before one beside the configuration."""
    found = read_settings(parse_flags(arguments), lambda path: files[path].encode())

    assert (sidecars, ["default-scheduler"]) == (
        [spec.name for spec in found.sidecars],
        [profile.scheduler_name for profile in found.loaded.profiles],
    )


@pytest.mark.parametrize("flag", ["config", "plugins"])
def test_unreadable_file(flag):
    """A file that can't be read is named with its flag."""
    with pytest.raises(FlagError, match=rf"^--{flag}: open /nowhere/x: no such file or directory$"):
        read_settings(parse_flags([f"--{flag}=/nowhere/x"]))
