"""What the operator says of Schedulers and plugins that do not go together, on both API servers.

Each is made under an operator that keeps others meanwhile, by names of its own.
"""

import subprocess
from contextlib import contextmanager

import pytest

from tests.e2e.installation import BIN, KUSTOMIZE, SYSTEM
from tests.e2e.operated_installation import INSTALLATIONS, OPERATOR, operated
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e
IN = ("-n", SYSTEM)
FAR = "127.0.0.1:1"
ROLE = "berth-operator-namespace"
EACH_CHANGE = '{.type} {.object.metadata.name}{"\\n"}'
# Deeper than what a reader of it could recurse into.
NESTED = 450


@pytest.fixture(scope="module", params=INSTALLATIONS)
def cluster(request, tmp_path_factory):
    with operated(tmp_path_factory.mktemp("conditions"), "secondary", INSTALLATIONS[request.param]) as found:
        yield found


def profile(name, *plugins, **more):
    """A spec of one profile, and some plugins."""
    return {"profiles": [{"schedulerName": name}], "plugins": [{"name": one} for one in plugins], **more}


def until_rolled_out(cluster, name):
    cluster.until(lambda: cluster.condition("Progressing", name)[1] == "RolledOut", f"{name} is rolled out")


def plugin_condition(cluster, name):
    """Give reason and message of a SchedulerPlugin's condition."""
    conditions = cluster.get("schedulerplugin", name).get("status", {}).get("conditions", [{}])
    return tuple(conditions[0].get(field, "") for field in ("reason", "message"))


def notes(cluster, name, reason):
    """Give what events of a Scheduler say, the oldest first."""
    found = [
        one
        for one in cluster.get("events.events.k8s.io")["items"]
        if (one["regarding"]["name"], one["reason"]) == (name, reason)
    ]
    return [one["note"] for one in sorted(found, key=lambda one: one["eventTime"])]


@contextmanager
def changes_of_pods(cluster, name):
    """Follow a Scheduler's pods; gives what kubectl has printed so far."""
    log = cluster.folder / f"{name}.pods"
    command = ["get", "pods", *IN, "-l", f"berth.dev/scheduler={name}", "--watch", "--output-watch-events"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(BIN / "kubectl"), *command, f"--output=jsonpath={EACH_CHANGE}"],
            env=cluster.environment,
            stdout=output,
        )
        try:
            yield lambda: [line.split() for line in log.read_text().splitlines()]
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def at_once(changes):
    """Give how many pods there were at once, at most."""
    present, most = set(), 0
    for kind, name in changes:
        present = present - {name} if kind == "DELETED" else present | {name}
        most = max(most, len(present))
    return most


@contextmanager
def denied(cluster, resource):
    """The operator may read these, and no longer write them."""
    plural = resource.partition(".")[0]
    rules = cluster.get("clusterrole", ROLE)["rules"]
    reading = [
        {"apiGroups": rule["apiGroups"], "resources": [plural], "verbs": ["list", "watch"]}
        for rule in rules
        if plural in rule["resources"]
    ]
    others = [rule | {"resources": [one for one in rule["resources"] if one != plural]} for rule in rules]
    cluster.patch("clusterrole", ROLE, {"rules": [rule for rule in others if rule["resources"]] + reading})
    try:
        cluster.until(lambda: not cluster.may(OPERATOR, "patch", resource), "the right is gone")
        yield
    finally:
        cluster.patch("clusterrole", ROLE, {"rules": rules})


def test_nested_too_deep(cluster):
    """A plugin's arguments that no scheduler could read are in the conditions, and others are kept."""
    arguments = 1
    for _ in range(NESTED):
        arguments = {"a": arguments}
    cluster.plugins(("deep", {"address": FAR, "arguments": arguments}))
    cluster.schedulers(("deep", profile("deep", "deep")), ("flat", profile("flat")))
    cluster.until(lambda: cluster.is_degraded("deep", "InvalidConfiguration"), "it is reported")
    until_rolled_out(cluster, "flat")

    assert "SchedulerPlugin deep: spec.arguments.a.a" in cluster.condition("Degraded", "deep")[2]
    assert [None] * len(cluster.processes) == [process.poll() for process in cluster.processes]


def test_without_election(cluster):
    """Without leader election the old pod is gone before the new one comes, whatever surge is asked for."""
    alone = {"leaderElection": {"leaderElect": False}, "rollout": {"maxSurge": 1}}
    cluster.schedulers(("alone", profile("alone", **alone)))
    until_rolled_out(cluster, "alone")
    with changes_of_pods(cluster, "alone") as changes:
        cluster.until(changes, "the first pod is seen")
        cluster.patch("scheduler", "alone", {"spec": {"parallelism": 4}})
        cluster.until(lambda: len({name for _, name in changes()}) == 2, "there is another pod")
        until_rolled_out(cluster, "alone")

        assert 1 == at_once(changes())


def test_profile_served_twice(cluster):
    """Of two Schedulers of one profile the later one waits and names the other, until that gives it up."""
    cluster.schedulers(("twin-a", profile("twin")))
    until_rolled_out(cluster, "twin-a")
    cluster.schedulers(("twin-b", profile("twin")))
    cluster.until(lambda: cluster.is_degraded("twin-b", "ProfileServedTwice"), "it is reported")
    reported = f"profile twin is served by Scheduler {SYSTEM}/twin-a, which was first"
    assert reported in cluster.condition("Degraded", "twin-b")[2]
    assert {} == cluster.get("deployment", "berth-twin-b")
    assert "False" == cluster.condition("Degraded", "twin-a")[0]

    cluster.patch("scheduler", "twin-a", {"spec": profile("no-twin")})
    until_rolled_out(cluster, "twin-b")
    cluster.until(lambda: cluster.condition("Degraded", "twin-b")[0] == "False", "it is mended")


def test_misspelled_profile(cluster):
    """A profile that a plugin names and no Scheduler has is in the conditions of both."""
    cluster.plugins(("typo", {"address": FAR, "profiles": ["paking"]}))
    cluster.schedulers(("typo", profile("packing", "typo")))
    cluster.until(lambda: plugin_condition(cluster, "typo")[0] == "UnknownProfile", "it is reported")
    cluster.until(lambda: cluster.condition("PluginsReady", "typo")[0] == "False", "of the Scheduler, too")

    assert "spec.profiles names paking" in plugin_condition(cluster, "typo")[1]
    assert "names paking, which no Scheduler that runs it has" in cluster.condition("PluginsReady", "typo")[2]


def test_plugins_of_one_name(cluster):
    """Plugins whose containers and volumes would have the same names are both named, and nothing is made."""
    cluster.plugins(
        *((name, {"image": "berth/gpu-share:test", "profiles": ["dashes"]}) for name in ("a.b", "a-b"))
    )
    cluster.schedulers(("dashes", profile("dashes", "a.b", "a-b")))
    cluster.until(lambda: cluster.is_degraded("dashes", "InvalidConfiguration"), "it is reported")

    reported = "plugins a.b and a-b would both be plugin-a-b in the pod; rename one of them"
    assert reported in cluster.condition("Degraded", "dashes")[2]
    assert {} == cluster.get("deployment", "berth-dashes")


def test_dotted_name(cluster):
    """A Scheduler that no Service could be named after is refused with what to do."""
    body = {"apiVersion": "berth.dev/v1alpha1", "kind": "Scheduler", "spec": profile("dotted")}
    given = body | {"metadata": {"name": "dotted.name", "namespace": SYSTEM}}

    assert "give it a name without dots" in cluster.kubectl("create", "-f", "-", stdin=given, fails=True)


def test_later_causes(cluster):
    """Each cause for which objects cannot be written has an event of its own."""
    with denied(cluster, "services"):
        cluster.schedulers(("denied", profile("denied")))
        cluster.until(lambda: cluster.is_degraded("denied", "ApplyFailed"), "it is reported")
        first = cluster.condition("Degraded", "denied")[2]
        with denied(cluster, "networkpolicies.networking.k8s.io"):
            cluster.kubectl("delete", "networkpolicy", "berth-denied", *IN)
            cluster.until(lambda: len(notes(cluster, "denied", "ApplyFailed")) == 2, "the later one, too")
    cluster.until(lambda: cluster.condition("Degraded", "denied")[0] == "False", "it is mended")

    assert ("services" in first, "networkpolicies" in first) == (True, False)
    earlier, later = notes(cluster, "denied", "ApplyFailed")
    assert ("services" in earlier, "networkpolicies" in earlier) == (True, False)
    assert ("services" in later, "networkpolicies" in later) == (True, True)


def test_reasons(cluster):
    """Events say of a condition whether it holds, so that no reason reads as its opposite."""
    wrong = {"multiPoint": {"enabled": [{"name": "Nope"}]}}
    cluster.schedulers(("words", {"profiles": [{"schedulerName": "words", "plugins": wrong}]}))
    cluster.until(lambda: cluster.is_degraded("words", "InvalidConfiguration"), "it is reported")
    cluster.patch("scheduler", "words", {"spec": profile("words")})
    cluster.until(lambda: notes(cluster, "words", "AsExpected"), "it is mended")

    (broken,) = notes(cluster, "words", "InvalidConfiguration")
    assert broken.startswith("Degraded=True: ")
    assert ["Degraded=False: nothing keeps it from being as the spec asks"] == notes(
        cluster, "words", "AsExpected"
    )
    assert ["PluginsReady=True: spec.plugins names none"] == notes(cluster, "words", "NoPlugins")


def test_plugin_administration(cluster):
    """`berth plugin shadow` ends in the SchedulerPlugin, and in the list that all replicas follow."""
    cluster.plugins(("shaded", {"address": FAR, "profiles": ["shaded"]}))
    cluster.schedulers(("shaded", profile("shaded", "shaded", replicas=2)))
    until_rolled_out(cluster, "shaded")
    line = ["plugin", "shadow", "shaded", *IN, "--kubeconfig", str(cluster.kubeconfig)]
    done = subprocess.run([str(BIN / "berth"), *line], capture_output=True, text=True, check=True)
    cluster.until(lambda: "shadow: true" in listed(cluster, "shaded"), "the list has it")

    assert "SchedulerPlugin berth-system/shaded is in shadow in shaded\n" == done.stdout
    assert cluster.get("schedulerplugin", "shaded")["spec"]["shadow"]


def listed(cluster, name):
    """Give the list of plugins that a Scheduler's replicas follow."""
    return cluster.get("configmap", f"berth-{name}-plugins")["data"]["plugins.yaml"]


def test_beside_kube_scheduler(cluster):
    """While kube-scheduler holds its lease, a Scheduler of its profile waits until both share that lease."""
    spec = {
        "holderIdentity": "control-plane",
        "leaseDurationSeconds": 15,
        "renewTime": "2999-01-01T00:00:00.000000Z",
    }
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    lease = head | {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": spec}
    cluster.kubectl("create", "-f", "-", stdin=lease)
    cluster.kubectl("apply", "-f", str(KUSTOMIZE / "components/lease-of-kube-scheduler/rights.yaml"))
    cluster.schedulers(("instead", profile("default-scheduler")))
    cluster.until(lambda: cluster.is_degraded("instead", "ProfileServedTwice"), "it is reported")
    assert (
        "control-plane holds the lease kube-system/kube-scheduler"
        in cluster.condition("Degraded", "instead")[2]
    )
    assert {} == cluster.get("deployment", "berth-instead")

    shared = {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}
    cluster.patch("scheduler", "instead", {"spec": {"leaderElection": shared}})
    until_rolled_out(cluster, "instead")
    account = f"system:serviceaccount:{SYSTEM}:berth-instead"
    assert cluster.may(account, "create", "leases.coordination.k8s.io", "kube-system")
