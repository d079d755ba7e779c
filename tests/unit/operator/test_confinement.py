"""The operator touches what its Schedulers control, and nothing that only has the name."""

import json

import pytest

from berth.operator.rendering import plan
from tests.unit.operator import kit
from tests.unit.operator.at_work import PLUGINS, SCHEDULERS, SYSTEM, operating
from tests.unit.operator.rights import documents

CORE = f"/api/v1/namespaces/{SYSTEM}"
BINDINGS = "clusterrolebindings.rbac.authorization.k8s.io"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
MINE = {"app": "mine"}
ONCE = [
    "deployments",
    "networkpolicies",
    "poddisruptionbudgets",
    "rolebindings",
    "serviceaccounts",
    "services",
]


def named(name, **more):
    return {"metadata": {"name": name, "labels": MINE}, **more}


def message(work, kind="Degraded", name="main"):
    """Give a condition's message."""
    conditions = work.objects("schedulers.berth.dev")[name]["status"]["conditions"]
    return next(one["message"] for one in conditions if one["type"] == kind)


SERVICE = named("berth-main", spec={"ports": [{"port": 80}]})


@pytest.mark.parametrize(
    ("plural", "collection", "body"),
    [
        ("services", "services", SERVICE),
        ("serviceaccounts", "serviceaccounts", named("berth-main")),
        ("configmaps", "configmaps", named("berth-main-plugins", data={"a": "b"})),
    ],
)
async def test_foreign(tmp_path, plural, collection, body):
    """What was there before is left as it was, named in a condition, and outlives the Scheduler."""
    async with operating(tmp_path) as work:
        await work.send("POST", f"{CORE}/{plural}", body)
        name = body["metadata"]["name"]
        before = work.objects(collection)[name]
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Degraded") == ("True", "NotControlled"))
        assert f" {name} is there, is not controlled by this Scheduler" in message(work)
        await work.send("DELETE", f"{SCHEDULERS}/main")
        await work.reach(lambda: "berth-main" not in work.objects("networkpolicies.networking.k8s.io"))

        assert before == work.objects(collection)[name]


async def test_foreign_account(tmp_path):
    """A service account of another is given no rights, and no pod runs under it."""
    async with operating(tmp_path) as work:
        await work.send("POST", f"{CORE}/serviceaccounts", named("berth-main"))
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Degraded") == ("True", "NotControlled"))

        assert [] == [one for one in work.objects(BINDINGS) if one.endswith(":main")]
        assert {} == work.objects("deployments.apps")


async def test_foreign_goes(tmp_path):
    """Once the object of another is out of the way, the Scheduler gets its own."""
    async with operating(tmp_path) as work:
        await work.send("POST", f"{CORE}/services", SERVICE)
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Degraded") == ("True", "NotControlled"))
        await work.send("DELETE", f"{CORE}/services/berth-main")
        await work.reach(lambda: work.condition("Degraded") == ("False", "AsExpected"))

        assert "main" == work.objects("services")["berth-main"]["metadata"]["labels"]["berth.dev/scheduler"]


async def test_foreign_with_labels(tmp_path):
    """The labels alone make nothing the Scheduler's: such an object is not deleted as left over."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Progressing") == ("False", "RolledOut"))
        labels = work.objects("configmaps")["berth-main-plugins"]["metadata"]["labels"]
        before = {name for name in work.objects("configmaps") if "-config-" in name}
        await work.send("POST", f"{CORE}/configmaps", {"metadata": {"name": "copy", "labels": labels}})
        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": {"parallelism": 4}})
        await work.reach(lambda: not before & set(work.objects("configmaps")))

        assert "copy" in work.objects("configmaps")


async def test_owner_removed(tmp_path):
    """An object without its controller reference is refused; the others are kept as before."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Available")[0] == "True")
        await work.send("PATCH", f"{CORE}/services/berth-main", {"metadata": {"ownerReferences": None}})
        await work.reach(lambda: work.condition("Degraded") == ("True", "NotControlled"))
        path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/berth-main"
        await work.send("PATCH", path, {"spec": {"progressDeadlineSeconds": 5}})
        await work.reach(
            lambda: work.objects("deployments.apps")["berth-main"]["spec"]["progressDeadlineSeconds"] == 600
        )


async def test_label_removed(tmp_path):
    """An object that lost its labels is the Scheduler's by its controller reference, and gets them back."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Available")[0] == "True")
        await work.send("PATCH", f"{CORE}/services/berth-main", {"metadata": {"labels": None}})
        await work.reach(lambda: "labels" in work.objects("services")["berth-main"]["metadata"])


async def test_bindings_go_with_roles(tmp_path):
    """A role that is uninstalled takes its bindings along, with no operator there to delete them."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Available")[0] == "True")
        role = json.loads(await work.send("GET", f"{RBAC}/clusterroles/berth-scheduler-volumes"))
        binding = work.objects(BINDINGS)[f"berth-scheduler-volumes:{SYSTEM}:main"]

    assert [("ClusterRole", "berth-scheduler-volumes", role["metadata"]["uid"])] == [
        (one["kind"], one["name"], one["uid"]) for one in binding["metadata"]["ownerReferences"]
    ]


async def test_failure_of_one(tmp_path):
    """A Scheduler whose plugin's arguments are nested too deep gets that message, and others are kept."""
    arguments = 1
    for _ in range(100):
        arguments = {"a": arguments}
    async with operating(tmp_path) as work:
        await work.send("POST", PLUGINS, kit.plugin(arguments=arguments))
        await work.send("POST", SCHEDULERS, kit.scheduler(plugins=[{"name": "gpu-share"}]))
        await work.reach(lambda: work.condition("Degraded") == ("True", "InvalidConfiguration"))
        assert "SchedulerPlugin gpu-share: spec.arguments.a.a" in message(work)
        await work.send("POST", SCHEDULERS, kit.scheduler("other", profiles=[{"schedulerName": "o"}]))
        await work.reach(lambda: work.condition("Available", "other")[0] == "True")


async def test_internal_error(tmp_path, monkeypatch):
    """What no one foresaw about one Scheduler is its condition, and the others are kept."""

    def broken(scheduler, *rest, planned=plan):
        if scheduler["metadata"]["name"] == "main":
            raise ZeroDivisionError("unforeseen")
        return planned(scheduler, *rest)

    monkeypatch.setattr("berth.operator.reconciler.plan", broken)
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Degraded") == ("True", "InternalError"))
        assert "ZeroDivisionError: unforeseen" == message(work)
        await work.send("POST", SCHEDULERS, kit.scheduler("other", profiles=[{"schedulerName": "o"}]))
        await work.reach(lambda: work.condition("Available", "other")[0] == "True")


async def test_rights_until_last_pod(tmp_path):
    """Rights that the new pods do not need go with the last of the old ones; a paused rollout keeps them."""
    disabled = [{"name": name} for name in ("DefaultPreemption",)]
    profile = {"schedulerName": "packing", "plugins": {"multiPoint": {"disabled": disabled}}}
    preemption = f"berth-scheduler-preemption:{SYSTEM}:main"
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Progressing") == ("False", "RolledOut"))
        old = set(work.objects("pods"))
        paused = {"profiles": [profile], "rollout": {"paused": True}}
        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": paused})
        await work.reach(lambda: work.condition("Progressing") == ("False", "Paused"))
        assert preemption in work.objects(BINDINGS)
        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": {"rollout": {"paused": False}}})
        seen = []

        def withdrawn():
            seen.append((preemption in work.objects(BINDINGS), bool(old & set(work.objects("pods")))))
            return not seen[-1][0]

        await work.reach(withdrawn)

    assert (False, True) not in seen


async def test_rivals(tmp_path):
    """Of two Schedulers that serve one profile the later one waits, until they share a lease."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.send("POST", SCHEDULERS, kit.scheduler("twin"))
        await work.reach(lambda: work.condition("Available")[0] == "True")
        await work.reach(lambda: work.condition("Degraded", "twin") == ("True", "ProfileServedTwice"))
        said = f"profile packing is served by Scheduler {SYSTEM}/main, which was first (created 20"
        assert said in message(work, name="twin")
        assert ["berth-main"] == [*work.objects("deployments.apps")]
        assert ("False", "AsExpected") == work.condition("Degraded")

        lease = {"leaderElection": {"resourceName": "berth-main"}}
        await work.send("PATCH", f"{SCHEDULERS}/twin", {"spec": lease})
        await work.reach(lambda: work.condition("Available", "twin")[0] == "True")
        await work.reach(lambda: work.condition("Degraded", "twin") == ("False", "AsExpected"))

        own = {"leaderElection": None}
        await work.send("PATCH", f"{SCHEDULERS}/twin", {"spec": own})
        await work.reach(lambda: work.condition("Available", "twin") == ("False", "ScaledToZero"))
        await work.reach(lambda: work.condition("Degraded", "twin") == ("True", "ProfileServedTwice"))
        assert "True" == work.condition("Available")[0]

        await work.send("DELETE", f"{SCHEDULERS}/main")
        await work.reach(lambda: work.condition("Available", "twin")[0] == "True")


async def test_a_rival_that_waits_is_logged_when_that_begins_and_ends(tmp_path, caplog):
    """However often it is looked at meanwhile, waiting is one warning, and its end is one line."""
    caplog.set_level("INFO", logger="berth.operator")
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.send("POST", SCHEDULERS, kit.scheduler("twin"))
        await work.reach(lambda: work.condition("Degraded", "twin") == ("True", "ProfileServedTwice"))
        for count in range(10):
            label = {"metadata": {"labels": {"seen": f"{count}"}}}
            await work.send("PATCH", f"{SCHEDULERS}/twin", label)
        await work.reach(lambda: work.condition("Available")[0] == "True")
        await work.send("DELETE", f"{SCHEDULERS}/main")
        await work.reach(lambda: work.condition("Available", "twin")[0] == "True")

    about = [record for record in caplog.records if f"object={SYSTEM}/twin" in record.getMessage()]
    assert [] == [one.getMessage() for one in caplog.records if "tried again" in one.getMessage()]
    assert ["WARNING"] == [one.levelname for one in about if "ProfileServedTwice" in one.getMessage()]
    assert ["INFO"] == [one.levelname for one in about if "Degraded=False" in one.getMessage()]


async def test_a_profile_of_a_running_rival(tmp_path):
    """A change that adds a profile which another Scheduler serves waits, and what ran before goes on."""
    other = [{"schedulerName": "other"}]
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler("first", profiles=other))
        await work.reach(lambda: work.condition("Available", "first")[0] == "True")
        await work.send("POST", SCHEDULERS, kit.scheduler("second"))
        await work.reach(lambda: work.condition("Available", "second")[0] == "True")
        before = work.objects("deployments.apps")["berth-first"]["spec"]
        both = {"profiles": [*other, {"schedulerName": "packing"}]}
        await work.send("PATCH", f"{SCHEDULERS}/first", {"spec": both})
        await work.reach(lambda: work.condition("Degraded", "first") == ("True", "ProfileServedTwice"))
        assert ("False", "AsExpected") == work.condition("Degraded", "second")
        assert before == work.objects("deployments.apps")["berth-first"]["spec"]

        await work.send("DELETE", f"{SCHEDULERS}/second")
        await work.reach(lambda: work.condition("Degraded", "first") == ("False", "AsExpected"))
        assert before != work.objects("deployments.apps")["berth-first"]["spec"]


async def test_misspelled_profile(tmp_path):
    """A profile that a plugin names and no Scheduler has is in the conditions of both."""
    async with operating(tmp_path) as work:
        await work.send("POST", PLUGINS, kit.plugin(address="127.0.0.1:1", profiles=["paking"]))
        await work.send("POST", SCHEDULERS, kit.scheduler(plugins=[{"name": "gpu-share"}]))
        await work.reach(lambda: work.condition("PluginsReady") == ("False", "PluginNotReady"))
        await work.reach(lambda: "UnknownProfile" in json.dumps(work.objects("schedulerplugins.berth.dev")))

        assert "names paking, which no Scheduler that runs it has" in message(work, "PluginsReady")


async def test_nothing_to_do(tmp_path):
    """What is as it should be is not written again."""
    async with operating(tmp_path) as work:
        await work.send("POST", PLUGINS, kit.plugin(profiles=["packing"]))
        await work.send("POST", SCHEDULERS, kit.scheduler(plugins=[{"name": "gpu-share"}], replicas=2))
        await work.reach(lambda: work.condition("Progressing") == ("False", "RolledOut"))

        writes = [one for one in work.ledger.used if one.verb == "patch" and one.resource in ONCE]
        assert sorted(ONCE) == sorted(one.resource for one in writes)


DEFAULT = [{"schedulerName": "default-scheduler"}]
SHARED = {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}


def kube_schedulers_lease(renewed):
    spec = {
        "holderIdentity": "control-plane_1",
        "leaseDurationSeconds": 15,
        "renewTime": f"{renewed}.000000Z",
    }
    return {"metadata": {"name": "kube-scheduler"}, "spec": spec}


async def test_beside_kube_scheduler(tmp_path):
    """A Scheduler of kube-scheduler's profile is not rolled out until it shares the lease."""
    grants = documents("../components/lease-of-kube-scheduler/rights.yaml")
    async with operating(tmp_path, grants=grants) as work:
        lease = kube_schedulers_lease("2999-01-01T00:00:00")
        await work.send("POST", LEASES, lease)
        await work.send("POST", SCHEDULERS, kit.scheduler(profiles=DEFAULT))
        await work.reach(lambda: work.condition("Degraded") == ("True", "ProfileServedTwice"))
        assert "control-plane_1 holds the lease kube-system/kube-scheduler" in message(work)
        assert {} == work.objects("deployments.apps")

        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": {"leaderElection": SHARED}})
        await work.reach(lambda: work.condition("Available")[0] == "True")
        assert {} == work.objects("rolebindings.rbac.authorization.k8s.io").get("berth-main-lease", {})
        shared = f"berth-scheduler-lease-of-kube-scheduler:{SYSTEM}:main"
        assert shared in work.objects("clusterrolebindings.rbac.authorization.k8s.io")


async def test_after_kube_scheduler(tmp_path):
    """A lease that has run out keeps no Scheduler from being rolled out."""
    async with operating(tmp_path) as work:
        await work.send("POST", LEASES, kube_schedulers_lease("2001-01-01T00:00:00"))
        await work.send("POST", SCHEDULERS, kit.scheduler(profiles=DEFAULT))
        await work.reach(lambda: work.condition("Available")[0] == "True")
