"""The list of out-of-tree plugins, in a file of its own or behind a configuration."""

import pytest
import yaml

from berth.config import Duration, ExtensionPoint, PluginListError, ValidationError, load
from berth.config.out_of_tree.plugin_list import list_beside, parse_plugin_list, read_plugin_list
from berth.config.out_of_tree.sidecars import (
    DEFAULT_POINTS,
    DEFAULT_POLICY,
    Accepted,
    FailurePolicy,
    catalogue_of,
    is_unix,
    socket_path,
)
from tests.unit.config.files import file, names, points, profile_file

HEAD = "apiVersion: berth.dev/v1alpha1\nkind: PluginList\nplugins:\n"
FULL = (
    HEAD
    + """\
- name: gpu-share
  address: unix:/run/berth/gpu-share.sock
  timeout: 200ms
  extensionPoints: [filter, score, reserve]
  failurePolicy: {filter: Ignore, score: Fail}
  args: {policy: pack, weights: [1, 2.5]}
- {name: Shop, address: 'localhost:50051'}
"""
)


def errors_of(text):
    with pytest.raises(PluginListError) as error:
        parse_plugin_list(text, "list.yaml")
    return list(error.value.messages)


def one(**fields):
    entry = {"name": "a", "address": "unix:/a", **fields}
    members = ", ".join(f"{name}: {value}" for name, value in entry.items() if value is not None)
    return f"{HEAD}- {{{members}}}\n"


def test_full():
    """Every field is read; what is left out has a sensible default."""
    share, shop = parse_plugin_list(FULL, "f")

    assert ("gpu-share", "unix:/run/berth/gpu-share.sock", "200ms") == (
        share.name,
        share.address,
        str(share.timeout),
    )
    assert {ExtensionPoint.FILTER, ExtensionPoint.SCORE, ExtensionPoint.RESERVE} == share.extension_points
    assert (FailurePolicy.IGNORE, FailurePolicy.FAIL, FailurePolicy.FAIL) == tuple(
        map(share.policy_at, (ExtensionPoint.FILTER, ExtensionPoint.SCORE, ExtensionPoint.RESERVE))
    )
    assert {"policy": "pack", "weights": [1, 2.5]} == share.args
    assert (None, DEFAULT_POINTS, DEFAULT_POLICY, None) == (
        shop.timeout,
        shop.extension_points,
        shop.failure_policy,
        shop.args,
    )


def test_accepted_arguments():
    """Arguments that were accepted before may be null, and make no difference between entries."""
    one, other = (
        parse_plugin_list(f"{HEAD}- {{name: a, address: 'unix:/a', args: 1, {more}}}", "f")[0]
        for more in ("acceptedArgs: null", "weight: 1")
    )

    assert (Accepted(None), None) == (one.accepted, other.accepted)
    assert one == other


def test_default_policy():
    """Verdicts and actions fail closed, opinions are done without."""
    assert (FailurePolicy.FAIL, FailurePolicy.IGNORE, FailurePolicy.FAIL) == (
        DEFAULT_POLICY[ExtensionPoint.FILTER],
        DEFAULT_POLICY[ExtensionPoint.SCORE],
        DEFAULT_POLICY[ExtensionPoint.RESERVE],
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (HEAD.replace("v1alpha1", "v1") + " []", "apiVersion: must be berth.dev/v1alpha1"),
        (HEAD.replace("PluginList", "Plugins") + " []", "kind: must be PluginList"),
        (
            "apiVersion: berth.dev/v1alpha1\nkind: PluginList",
            "plugins: must be a list with an entry for each plugin",
        ),
        (
            HEAD + "- 5",
            (
                "plugins[0]: must be an object with the fields acceptedArgs, address, args, exemptPods,"
                " extensionPoints, failurePolicy, metadataKeys, name, profiles, shadow, timeout, tls,"
                " user, weight"
            ),
        ),
        (HEAD + " []\nmore: 1", "more: unknown field; known ones are: apiVersion, directory, kind, plugins"),
        (
            one(adress=1),
            (
                "plugins[0].adress: unknown field; known ones are: acceptedArgs, address, args, exemptPods,"
                " extensionPoints, failurePolicy, metadataKeys, name, profiles, shadow, timeout, tls,"
                " user, weight"
            ),
        ),
        (
            one(address="'10.1.2.3:7777'"),
            (
                'plugins[0].address: plugin a: "10.1.2.3:7777" is reached over a network: give tls (caFile,'
                " certFile, keyFile), or let the plugin listen on a unix socket or on a loopback address"
            ),
        ),
        (
            one(metadataKeys="['k8s.io/*']"),
            (
                'plugins[0].metadataKeys: "k8s.io/*" belongs to Kubernetes and its controllers;'
                " plugins may not write it"
            ),
        ),
        (one(user="x"), "plugins[0].user: must be a user's number"),
        (one(user="-1"), "plugins[0].user: must be a user's number"),
        (
            one(metadataKeys="x"),
            "plugins[0].metadataKeys: must be a list of label and annotation keys, or prefix/*",
        ),
        (one(name=None), "plugins[0].name: give the plugin a name, as profiles will call it"),
        (one(name="NodeName"), 'plugins[0].name: "NodeName" is an in-tree plugin; choose another name'),
        (one(address=None), "plugins[0].address: missing; write unix:/path/to.sock or host:port"),
        (
            one(address="5"),
            "plugins[0].address: must be a string, not number; write unix:/path/to.sock or host:port",
        ),
        (
            one(address="host"),
            'plugins[0].address: "host" is no address; write unix:/path/to.sock or host:port',
        ),
        (
            one(address="'h:0'"),
            'plugins[0].address: "h:0" is no address; write unix:/path/to.sock or host:port',
        ),
        (
            one(address="unix:a"),
            'plugins[0].address: "unix:a" holds no absolute path; write unix:/path/to.sock or host:port',
        ),
        (
            one(address="unix:/" + "a" * 120),
            (
                "plugins[0].address: the socket's path is longer than 107 bytes; write unix:/path/to.sock"
                " or host:port"
            ),
        ),
        (one(timeout=5), "plugins[0].timeout: must be a duration above zero, such as 50ms or 1.5s"),
        (one(timeout="-1s"), "plugins[0].timeout: must be a duration above zero, such as 50ms or 1.5s"),
        (
            one(extensionPoints="[preScore]"),
            (
                'plugins[0].extensionPoints: "preScore" is no extension point of sidecars; these are:'
                " preEnqueue, queueSort, filter, postFilter, score, reserve, permit, preBind, bind, postBind,"
                " placementGenerate, placementScore"
            ),
        ),
        (
            one(extensionPoints="[queueSort]", shadow="true"),
            "plugins[0].shadow: a plugin that orders the queue can't stand in shadow: no other one does",
        ),
        (
            one(extensionPoints="filter"),
            (
                "plugins[0].extensionPoints: must be a list of: preEnqueue, queueSort, filter, postFilter,"
                " score, reserve, permit, preBind, bind, postBind, placementGenerate, placementScore"
            ),
        ),
        (one(failurePolicy="{score: Never}"), "plugins[0].failurePolicy.score: must be Fail or Ignore"),
        (
            one(extensionPoints="[filter]", failurePolicy="{score: Fail}"),
            (
                "plugins[0].failurePolicy.score: the plugin does not serve this point; remove it here or"
                " add it there"
            ),
        ),
        (
            "{",
            (
                "couldn't get version/kind; json parse error: Expecting property name enclosed in double"
                " quotes: line 1 column 2 (char 1)"
            ),
        ),
        (HEAD + "- {name: a, name: b, address: 'localhost:1'}", 'line 4: key "name" already set in map'),
    ],
)
def test_refused(text, error):
    """A mistake names file, field and remedy."""
    assert [f"list.yaml: {error}"] == errors_of(text)


def test_all_mistakes_at_once():
    """Every mistake is reported, not only the first."""
    text = HEAD + "- {name: a, address: 'localhost:1'}\n- {name: a, address: x, timeout: x}\n"

    assert 3 == len(errors_of(text))


@pytest.mark.parametrize("address", ["unix:/a", "unix:///a", "localhost:1", "127.3.2.1:65535", "'[::1]:443'"])
def test_address(address):
    """A socket's path or a host and a port."""
    assert parse_plugin_list(one(address=address), "f")


def test_socket_path():
    """Both spellings of a socket's address have one path."""
    assert ["/a/b", "/a/b"] == [socket_path("unix:/a/b"), socket_path("unix:///a/b")]
    assert not is_unix("localhost:1")


PROFILE = profile_file(plugins={"multiPoint": {"enabled": names(("gpu-share", 3))}})


def test_beside_a_configuration():
    """A list behind a configuration in the same file is found; kube-scheduler does not see it."""
    text = f"{PROFILE}---\n{FULL}"

    specs = list_beside(text, "f").plugins
    assert ["gpu-share", "Shop"] == [spec.name for spec in specs]
    assert "gpu-share=3" == points(text, out_of_tree=catalogue_of(specs))["score"][-1]


@pytest.mark.parametrize(
    "rest", ["", "---\n", "---\nnonsense: [\n", "---\nkind: PluginList\n", "---\n- berth.dev/x\n"]
)
def test_nothing_beside_a_configuration(rest):
    """Documents of other kinds, broken ones included, are none of our business."""
    assert () == list_beside(file() + rest, "f").plugins
    assert () == list_beside('{"apiVersion": "berth.dev/v1alpha1"}', "f").plugins


@pytest.mark.parametrize(
    ("rest", "error"),
    [
        (f"---\n{FULL}---\n{FULL}", "f: 2 documents of kind PluginList; put all entries into one"),
        ("---\napiVersion: berth.dev/v1\n", "f: apiVersion: must be berth.dev/v1alpha1"),
        (f"---\n{HEAD}  - [", "f: yaml: line"),
    ],
)
def test_broken_list_beside_a_configuration(rest, error):
    """A list that is meant for us must be right."""
    with pytest.raises(PluginListError) as raised:
        list_beside(file() + rest, "f")

    assert raised.value.messages[0].startswith(error)


def test_two_lists_in_a_file():
    """Neither is passed over."""
    with pytest.raises(PluginListError, match="f: 2 documents of kind PluginList; put all entries into one"):
        read_plugin_list(f"{FULL}---\n{FULL}", "f")


def test_args_for_a_profile():
    """A profile's own arguments win over the list's."""
    text = file(
        """
profiles:
- schedulerName: a
  plugins: &p {filter: {enabled: [{name: gpu-share}]}}
- schedulerName: b
  plugins: *p
  pluginConfig: [{name: gpu-share, args: {policy: spread}}]
"""
    )
    specs = parse_plugin_list(FULL, "f")

    first, second = load(text, out_of_tree=catalogue_of(specs)).profiles
    assert ("pack", "spread") == (specs[0].args_for(first)["policy"], specs[0].args_for(second)["policy"])


def test_profiles_and_exempt_pods():
    """An entry names the profiles that have the plugin, and the pods that its failures cost nothing."""
    (spec,) = parse_plugin_list(
        one(profiles="[gpu]", weight="3", exemptPods="{namespaces: [p], matchLabels: {app: x}}"), "list.yaml"
    )

    assert (("gpu",), 3) == (spec.profiles, spec.weight)
    assert (frozenset({"p"}), {"app": "x"}) == (spec.exempt_pods.namespaces, spec.exempt_pods.match_labels)


@pytest.mark.parametrize(
    ("fields", "shadow"), [({}, False), ({"shadow": "false"}, False), ({"shadow": "true"}, True)]
)
def test_shadow(fields, shadow):
    """A plugin takes part unless its entry says that it is in shadow."""
    assert [shadow] == [spec.shadow for spec in parse_plugin_list(one(**fields), "list.yaml")]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"profiles": "gpu"}, "profiles: must be a list of profiles by their schedulerName"),
        ({"weight": "0"}, "weight: must be a number from 1 to 100"),
        ({"shadow": "maybe"}, "shadow: must be true or false"),
        ({"exemptPods": "{namespaces: p}"}, "exemptPods.namespaces: must be a list of names"),
        (
            {"exemptPods": "{matchLabels: {a: 1}}"},
            "exemptPods.matchLabels: must be an object with a text for each label",
        ),
        (
            {"exemptPods": "{}"},
            "exemptPods: give namespaces or matchLabels: without both every pod would be exempt",
        ),
    ],
)
def test_profiles_and_exempt_pods_refused(fields, error):
    """A mistake names field and remedy."""
    assert [f"list.yaml: plugins[0].{error}"] == errors_of(one(**fields))


def test_timeout_type():
    """A timeout is a duration."""
    assert Duration.of_seconds(1.5) == parse_plugin_list(one(timeout="1.5s"), "f")[0].timeout


DIRECTORY = "directory: {path: /run/plugins, profiles: [p], timeout: 50ms, failurePolicy: {filter: Ignore}}"


def test_directory():
    """An entry without an address is a socket there; what no entry names is as the defaults say."""
    text = f"{HEAD}\n- {{name: a, weight: 3}}\n- {{name: b, address: 'localhost:1'}}\n{DIRECTORY}"
    (a, b), directory = read_plugin_list(text, "f")
    other = directory.spec_of("c")

    assert ("unix:/run/plugins/a.sock", 3, ()) == (a.address, a.weight, a.profiles)
    assert "localhost:1" == b.address
    assert ("c", "unix:/run/plugins/c.sock", ("p",)) == (other.name, other.address, other.profiles)
    assert "Ignore" == other.policy_at(ExtensionPoint.FILTER)
    assert (Duration(50_000_000), None) == (other.timeout, other.args)


def test_directory_alone():
    """A list may hold nothing but a directory, beside a configuration too."""
    text = f"apiVersion: berth.dev/v1alpha1\nkind: PluginList\n{DIRECTORY}"

    assert ((), "/run/plugins") == (
        read_plugin_list(text, "f").plugins,
        list_beside(f"kind: x\n---\n{text}", "f").directory.path,
    )


@pytest.mark.parametrize(
    ("directory", "error"),
    [
        ("{profiles: [p]}", "directory.path: give the absolute path of a directory for sockets"),
        ("{path: run}", "directory.path: give the absolute path of a directory for sockets"),
        ("{path: /x, profiles: p}", "directory.profiles: must be a list of profiles by their schedulerName"),
        ("[]", "directory: must be an object with the fields "),
        ("{path: /x, name: a}", "directory.name: unknown field; known ones are: args, exemptPods, "),
    ],
)
def test_directory_refused(directory, error):
    """A mistake in the directory names its field and the remedy."""
    (said,) = errors_of(f"{HEAD} []\ndirectory: {directory}")[:1]

    assert said.startswith(f"list.yaml: {error}")


def test_a_path_that_is_too_long():
    """The name counts in the length of a socket's path, too."""
    text = f"{HEAD}\n- {{name: a}}\ndirectory: {{path: /{'x' * 100}}}"

    assert [] != [said for said in errors_of(text) if "the socket's path is longer than 107 bytes" in said]


ORDERED = """
plugins:
  queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: queues}]}
"""


def of_queues():
    """A list with a plugin that orders the queue."""
    entry = "- {name: queues, address: 'unix:/a', extensionPoints: [queueSort, reserve]}"
    return parse_plugin_list(HEAD + entry, "list.yaml")


def test_a_sidecar_orders_the_queue():
    """A profile names it at queueSort in PrioritySort's place."""
    catalogue = catalogue_of(of_queues())
    (profile,) = load(profile_file(**yaml.safe_load(ORDERED)), out_of_tree=catalogue).profiles

    assert ("queues",) == profile.plugins(ExtensionPoint.QUEUE_SORT)


def test_all_profiles_have_the_same_order():
    """One queue has one order: kube-scheduler's rule, with its words."""
    sets = yaml.safe_load(ORDERED)
    text = file({"profiles": [{"schedulerName": "one", **sets}, {"schedulerName": "two"}]})

    with pytest.raises(ValidationError, match="must be the same for all profiles"):
        load(text, out_of_tree=catalogue_of(of_queues()))


def test_a_sidecar_at_every_point_is_no_second_order():
    """An entry that names no points leaves those alone where a profile has one plugin."""
    text = profile_file(plugins={"multiPoint": {"enabled": names("shop")}})
    (profile,) = load(
        text,
        out_of_tree=catalogue_of(parse_plugin_list(HEAD + "- {name: shop, address: 'unix:/a'}", "list.yaml")),
    ).profiles

    assert ("PrioritySort",) == profile.plugins(ExtensionPoint.QUEUE_SORT)
    assert "shop" in profile.plugins(ExtensionPoint.PLACEMENT_SCORE)


def test_a_command_in_place_of_an_address():
    """Where commands are allowed, an entry may say how its plugin is started."""
    listed = read_plugin_list(one(address=None, command="[./plugin, --fast]"), "l", commands=True)

    assert [(("./plugin", "--fast"), "")] == [(spec.command, spec.address) for spec in listed.plugins]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"command": "[./plugin]"}, r"plugins\[0\].address: is of no use", id="address, too"),
        pytest.param(
            {"address": None, "command": "./plugin"}, r"plugins\[0\].command: must be a list", id="text"
        ),
        pytest.param({"address": None, "command": "[]"}, r"plugins\[0\].command: must be a list", id="empty"),
    ],
)
def test_commands_that_are_none(fields, said):
    """The field that is wrong is named."""
    with pytest.raises(PluginListError, match=said):
        read_plugin_list(one(**fields), "l", commands=True)


def test_a_scheduler_knows_no_commands():
    """A list of a scheduler says where plugins are, not how they are started."""
    (said,) = [line for line in errors_of(one(command="[./plugin]")) if "command" in line]

    assert "plugins[0].command: unknown field" in said
