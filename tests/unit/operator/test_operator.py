"""The operator at work, with the rights that it is installed with: what it makes, reports and takes away."""

import asyncio
import json

import pytest
import yaml
from click.testing import CliRunner

from berth.cli.main import main
from berth.client import Api, load_endpoint
from berth.client.errors import NotFoundError, RejectedError
from berth.client.pods import PodWrites
from berth.commands.operator import kept_namespaces
from berth.config.out_of_tree.sidecars import arguments_digest
from berth.sandbox.access.identity import service_account
from berth.serving.access import AccessReview
from berth.serving.delegated_access import DelegatedAccess
from tests.failures.reporting import reports
from tests.unit.client.conftest import transport_to
from tests.unit.descheduling.kit import policy
from tests.unit.operator import kit
from tests.unit.operator.at_work import MONITOR, PLUGINS, SCHEDULERS, SYSTEM, operating
from tests.unit.operator.rights import BASE, documents

KUSTOMIZE = BASE.parent
EVERYWHERE = next(
    one
    for one in yaml.safe_load_all((KUSTOMIZE / "components/all-namespaces/rights.yaml").read_text())
    if one["kind"] == "ClusterRoleBinding"
)
EVERYTHING = {"replicas": 2, "plugins": [{"name": "gpu-share"}]}
DESCHEDULER = {"policy": {"profiles": policy("RemovePodsViolatingNodeTaints")["profiles"]}}
OPTIONAL = {
    "poddisruptionbudgets.policy": {"replicas": 1},
    "networkpolicies.networking.k8s.io": {"networkPolicy": False},
    "servicemonitors.monitoring.coreos.com": {"telemetry": {"metrics": {"serviceMonitor": False}}},
    "rolebindings.rbac.authorization.k8s.io": {"leaderElection": {"leaderElect": False}},
}


def kept(work, collection):
    return [name for name in work.objects(collection) if name.startswith("berth-main")]


async def test_rights(tmp_path):
    """A Scheduler's whole life, with all there is, uses each of the operator's rights and needs no other."""
    roles = [one for one in documents("operator_rights.yaml") if one["kind"] in ("ClusterRole", "Role")]
    # Some are bound only with gates, which the second Scheduler below has.
    on = ("GenericWorkload", "DRADeviceTaintRules", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
    gates = dict.fromkeys(on, True)
    optional = {"descheduler_image": "d:1", "explain_service": "x", "release": (1, 37)}
    async with operating(tmp_path, more=[MONITOR], **optional) as work:
        await work.send("POST", PLUGINS, kit.plugin())
        await work.send("POST", SCHEDULERS, kit.scheduler(**EVERYTHING))
        await work.reach(lambda: work.condition("Available")[0] == "True")
        assert all(kept(work, collection) for collection in OPTIONAL)
        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": {"parallelism": 4}})
        await work.reach(lambda: len(configurations(work)) == 2)
        await work.reach(lambda: len(configurations(work)) == 1)
        for collection, change in OPTIONAL.items():
            await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": change})
            await work.reach(
                lambda gone=collection: not [n for n in kept(work, gone) if n != "berth-operator"]
            )
        await drift(work)
        # A profile of kube-scheduler's, whose lease is looked at.
        groups = kit.scheduler(
            "groups",
            profiles=[{"schedulerName": "default-scheduler"}],
            featureGates=gates,
            descheduler=DESCHEDULER,
        )
        await work.send("POST", SCHEDULERS, groups)
        await work.reach(lambda: work.condition("Available", "groups")[0] == "True")
        await work.send("PATCH", f"{SCHEDULERS}/groups", {"spec": {"descheduler": None}})
        await work.reach(lambda: not work.objects("cronjobs.batch"))
        for name in ("main", "groups"):
            await work.send("DELETE", f"{SCHEDULERS}/{name}")
        await work.reach(
            lambda: (
                not [
                    n
                    for n in work.objects("clusterrolebindings.rbac.authorization.k8s.io")
                    if ":" + SYSTEM in n
                ]
            )
        )
        await reads_metrics(tmp_path, work)
        await work.reach(lambda: not work.ledger.spare(roles) or work.ledger.denied)

    assert [] == work.ledger.denied
    assert set() == work.ledger.spare(roles)


def configurations(work):
    """Give the names of the configurations that pods are started with."""
    return [name for name in kept(work, "configmaps") if "-config-" in name]


async def drift(work):
    """The same thing is changed by hand twice: reported as one event that is repeated."""
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/berth-main"
    for _ in range(2):
        await work.send("PATCH", path, {"spec": {"progressDeadlineSeconds": 5}})
        await work.reach(
            lambda: work.objects("deployments.apps")["berth-main"]["spec"]["progressDeadlineSeconds"] == 600
        )


async def reads_metrics(tmp_path, work):
    async with transport_to(load_endpoint(kubeconfig=str(tmp_path / "account"), environ={})) as transport:
        token = work.sandbox.access.issue(service_account(SYSTEM, "prometheus"))
        assert await DelegatedAccess(Api(transport))(AccessReview(token, "get", "/metrics"))


@reports(
    "scheduler-spec-wrong",
    condition="`Degraded`: `InvalidConfiguration`, with the scheduler's own complaint; the old one runs on",
)
async def test_broken_and_mended(tmp_path):
    """A configuration that cannot work changes nothing but conditions; a good one is taken up again."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Available")[0] == "True")
        before = work.objects("deployments.apps")["berth-main"]["spec"]
        bad = {"profiles": [{"schedulerName": "a", "plugins": {"score": {"enabled": [{"name": "Nope"}]}}}]}
        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": bad})
        await work.reach(lambda: work.condition("Degraded") == ("True", "InvalidConfiguration"))
        assert ("True", before) == (
            work.condition("Available")[0],
            work.objects("deployments.apps")["berth-main"]["spec"],
        )

        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": {"profiles": [{"schedulerName": "a"}]}})
        await work.reach(lambda: work.condition("Degraded") == ("False", "AsExpected"))
        assert before != work.objects("deployments.apps")["berth-main"]["spec"]


READY = {"type": "plugin.berth.dev/gpu-share", "status": "True", "reason": "Synced"}
ARGUMENTS = "arguments.plugin.berth.dev/gpu-share"


async def scheduler_tells(work, *conditions):
    """What the scheduler in the pod would say; these pods run no processes."""
    pods = PodWrites(work.api.transport)
    for name in [name for name, pod in work.objects("pods").items() if "gpu-share" in json.dumps(pod)]:
        await pods.patch_status(SYSTEM, name, {"status": {"conditions": [READY, *conditions]}})


def plugins_yaml(work):
    """The list of plugins that the pods read."""
    return work.objects("configmaps")["berth-main-plugins"]["data"]["plugins.yaml"]


def condition_of_plugin(work):
    """The SchedulerPlugin's ArgumentsAccepted: status and message."""
    status = work.objects("schedulerplugins.berth.dev")["gpu-share"].get("status") or {}
    found = [one for one in status.get("conditions") or () if one["type"] == "ArgumentsAccepted"]
    return [(one["status"], one["message"]) for one in found]


def kinds_with_event(work, note):
    """The kinds of the objects that have an event with this note."""
    events = work.objects("events").values()
    found = [
        (one.get("regarding") or one["involvedObject"], one.get("note") or one["message"]) for one in events
    ]
    return {about["kind"] for about, said in found if said == note}


@reports(
    "arguments-refused",
    condition="`ArgumentsAccepted` of SchedulerPlugin and Scheduler, with the plugin's own words",
    event="`Refused` of SchedulerPlugin and Scheduler",
)
async def test_refused_arguments(tmp_path):
    """Both kinds say so, and pods that start later are given the arguments that were accepted before."""
    async with operating(tmp_path) as work:
        await work.send("POST", PLUGINS, kit.plugin(arguments={"policy": "pack"}))
        await work.send("POST", SCHEDULERS, kit.scheduler(plugins=[{"name": "gpu-share"}]))
        await work.reach(lambda: "plugin-gpu-share" in json.dumps(work.objects("pods")))
        took = {"type": ARGUMENTS, "status": "True", "reason": "Accepted"}
        await scheduler_tells(work, took | {"message": arguments_digest({"policy": "pack"})})
        await work.reach(lambda: condition_of_plugin(work) == [("True", "")])
        assert "acceptedArgs" not in plugins_yaml(work)

        await work.send("PATCH", f"{PLUGINS}/gpu-share", {"spec": {"arguments": {"policy": "none"}}})
        await work.reach(lambda: "acceptedArgs:\n    policy: pack" in plugins_yaml(work))
        refused = {"type": ARGUMENTS, "status": "False", "reason": "Refused", "message": "policy: no such"}
        await scheduler_tells(work, refused)
        text = "gpu-share: policy: no such"
        await work.reach(lambda: condition_of_plugin(work) == [("False", text)])
        await work.reach(lambda: work.condition("ArgumentsAccepted") == ("False", "Refused"))
        kinds = {"Scheduler", "SchedulerPlugin"}
        await work.reach(lambda: kinds == kinds_with_event(work, f"ArgumentsAccepted=False: {text}"))
        assert "acceptedArgs:\n    policy: pack" in plugins_yaml(work)

        await work.send("PATCH", f"{PLUGINS}/gpu-share", {"spec": {"arguments": {"policy": "spread"}}})
        await scheduler_tells(work, took | {"message": arguments_digest({"policy": "spread"})})
        await work.reach(lambda: work.condition("ArgumentsAccepted") == ("True", "Accepted"))
        await work.reach(lambda: "acceptedArgs" not in plugins_yaml(work))


@reports("plugin-missing", condition="`Degraded`: `PluginNotFound`")
async def test_plugin_comes_later(tmp_path):
    """A plugin that is named before it is there is waited for, and its own status says who uses it."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler(plugins=[{"name": "gpu-share"}]))
        await work.reach(lambda: work.condition("Degraded") == ("True", "PluginNotFound"))
        assert ("False", "NotDeployed") == work.condition("Available")

        await work.send("POST", PLUGINS, kit.plugin(profiles=["packing"]))
        await work.reach(lambda: work.condition("PluginsReady") == ("False", "PluginNotReady"))
        await work.reach(lambda: "plugin-gpu-share" in json.dumps(work.objects("pods")))
        await scheduler_tells(work)
        await work.reach(lambda: work.condition("PluginsReady") == ("True", "AllReady"))
        await work.reach(lambda: "Running" in json.dumps(work.objects("schedulerplugins.berth.dev")))
        status = work.objects("schedulerplugins.berth.dev")["gpu-share"]["status"]
        assert ["main"] == status["schedulers"]

        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": {"plugins": []}})
        await work.reach(lambda: "NotUsed" in json.dumps(work.objects("schedulerplugins.berth.dev")))


@pytest.mark.parametrize(
    ("change", "line"),
    [({"arguments": {"policy": "spread"}}, "policy: spread"), ({"shadow": True}, "shadow: true")],
)
async def test_reaches_without_restart(tmp_path, change, line):
    """A plugin's new arguments, and its shadow, are in the mounted list, and the pods stay."""
    async with operating(tmp_path) as work:
        await work.send("POST", PLUGINS, kit.plugin(arguments={"policy": "pack"}))
        await work.send("POST", SCHEDULERS, kit.scheduler(plugins=[{"name": "gpu-share"}]))
        await work.reach(lambda: work.condition("Progressing") == ("False", "RolledOut"))
        pods = set(work.objects("pods"))
        await work.send("PATCH", f"{PLUGINS}/gpu-share", {"spec": change})
        await work.reach(
            lambda: line in work.objects("configmaps")["berth-main-plugins"]["data"]["plugins.yaml"]
        )

        assert pods == set(work.objects("pods"))


@reports("apply-refused", condition="`Degraded`: `ApplyFailed`, with the API server's words")
async def test_denied(tmp_path):
    """What the API server turns down is reported with its words, and tried again."""
    async with operating(tmp_path) as work:
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-operator-namespace"
        rules = json.loads(await work.send("GET", role))["rules"]
        without = [rule for rule in rules if "services" not in rule["resources"]]
        await work.send("PATCH", role, {"rules": without})
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Degraded") == ("True", "ApplyFailed"))
        conditions = work.objects("schedulers.berth.dev")["main"]["status"]["conditions"]
        assert "cannot patch resource" in next(
            one["message"] for one in conditions if one["type"] == "Degraded"
        )

        await work.send("PATCH", role, {"rules": rules})
        await work.reach(lambda: work.condition("Available")[0] == "True")


async def test_namespace_goes(tmp_path):
    """A namespace with a Scheduler in it goes without anybody's help."""
    async with operating(tmp_path, namespaces=(), grants=[EVERYWHERE]) as work:
        await work.send("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        await work.send("POST", SCHEDULERS.replace(SYSTEM, "team"), kit.scheduler())
        await work.reach(lambda: work.condition("Available")[0] == "True")
        await work.send("DELETE", "/api/v1/namespaces/team")
        await work.reach(lambda: "team" not in work.objects("namespaces"))
        await work.reach(
            lambda: (
                not [
                    n for n in work.objects("clusterrolebindings.rbac.authorization.k8s.io") if ":team:" in n
                ]
            )
        )

        with pytest.raises((NotFoundError, RejectedError)):
            await work.send("GET", f"{SCHEDULERS.replace(SYSTEM, 'team')}/main")


async def test_confined_to_namespaces(tmp_path):
    """A Scheduler in a namespace that the operator was not given becomes nothing, and needs no right."""
    async with operating(tmp_path, namespaces=(SYSTEM, "forbidden")) as work:
        await work.send("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        await work.send("POST", SCHEDULERS.replace(SYSTEM, "team"), kit.scheduler("theirs"))
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Available")[0] == "True")

        assert {"berth-main"} == set(work.objects("deployments.apps"))
        assert "status" not in work.objects("schedulers.berth.dev")["theirs"]
        assert {"forbidden"} == {asked.split()[-1].strip('"') for asked in work.ledger.denied}


@pytest.mark.parametrize(("flags", "line"), [((), "shadow: true"), (("--off",), "shadow: false")])
async def test_shadow_by_command(tmp_path, flags, line):
    """`berth plugin shadow -n` changes the resource, and through it the list of every replica."""
    async with operating(tmp_path) as work:
        await work.send("POST", PLUGINS, kit.plugin(profiles=["packing"]))
        await work.send("POST", SCHEDULERS, kit.scheduler(plugins=[{"name": "gpu-share"}], replicas=2))
        await work.reach(lambda: "main" in json.dumps(work.objects("schedulerplugins.berth.dev")))
        where = ["-n", SYSTEM, "--kubeconfig", str(tmp_path / "kubeconfig")]
        asked = ["plugin", "shadow", "gpu-share", *where, *flags]
        done = await asyncio.to_thread(CliRunner().invoke, main, asked)
        assert (0, True) == (done.exit_code, done.output.endswith(" in main\n")), done.output
        await work.reach(
            lambda: line in work.objects("configmaps")["berth-main-plugins"]["data"]["plugins.yaml"]
        )


@pytest.mark.parametrize(
    ("given", "kept"),
    [("", ("berth-system",)), ("*", ()), ("a, b,a", ("a", "b"))],
    ids=["its own", "all", "some"],
)
def test_namespaces_flag(given, kept):
    """Without a list the operator keeps its own namespace; only a star means all."""
    assert kept == kept_namespaces(given)
