"""Devices of claims count for a queue by their class, however a pod asks for them; shared claims once."""

import pytest

from berth_queues import Queues
from berth_queues.device_claims import CLAIMS, CLASSES, TEMPLATES, ClaimKey, PodDevices
from berth_queues.groups import COSCHEDULING_GROUPS, COSCHEDULING_LABEL, POD_GROUPS
from berth_queues.queue_objects import QUEUES
from berth_queues.status import statuses
from berth_sdk import Code, ObjectKey, Reason
from berth_sdk.testing import make_node, make_pod, running
from tests.hostile.work import calls
from tests.unit.queues.builders import evicted, refusal, uid

KINDS = ("Queue", "PodGroup", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
GPU, MIG = "gpu.example.com", "mig.example.com"
GPUS, MIGS = (f"{name}.deviceclass.resource.k8s.io/devices" for name in (GPU, MIG))
EXTENDED = "example.com/gpu"


def exactly(class_name=GPU, count=1, **fields):
    return {"exactly": {"deviceClassName": class_name, "count": count, **fields}}


def claim(*requests):
    return {"spec": {"devices": {"requests": list(requests)}}}


def template(*requests):
    return {"spec": claim(*requests)}


def device_class(extended=None):
    return {"spec": {"extendedResourceName": extended} if extended else {}}


def pod(name, *, namespace="a", templates=(), claims=(), priority=0, **requests):
    """A pod of a team, with an entry for each template and claim that it names."""
    made = make_pod(name, namespace=namespace, requests={"cpu": "1", **requests}, priority=priority)
    entries = [{"resourceClaimTemplateName": each} for each in templates]
    entries += [{"resourceClaimName": each} for each in claims]
    made["spec"]["resourceClaims"] = [{"name": f"c{i}", **each} for i, each in enumerate(entries)]
    return made


class Teams:
    """The plugin, two teams that may have two devices each of four, and objects of both namespaces."""

    def __init__(self, host, plugin):
        self.host, self.plugin = host, plugin

    def put(self, kind, name, document):
        namespaces = ("a", "b") if kind in {CLAIMS, TEMPLATES, POD_GROUPS} else ("",)
        for namespace in namespaces:
            self.host.cluster.put_object(self._key(kind, name, namespace), document)

    def remove(self, kind, name):
        for namespace in ("a", "b") if kind is POD_GROUPS else ("",):
            self.host.cluster.remove_object(self._key(kind, name, namespace))

    @staticmethod
    def _key(kind, name, namespace):
        return ObjectKey(kind.group, kind.version, kind.resource, namespace, name)

    async def place(self, *pods):
        for each in pods:
            await self.host.place(each, "n0")
        await self.host.update()

    def used(self, team="a"):
        return self.plugin.cluster.registry.used(f"Queue {team}")

    def status(self, team):
        found = {each.key.name: each.status for each in statuses(self.plugin.cluster)}
        return found[team]


@pytest.fixture
async def teams():
    plugin = Queues(KINDS)
    async with running(plugin, make_node("n0", allocatable={"cpu": "64", "pods": "110"})) as host:
        made = Teams(host, plugin)
        quota = {GPUS: "2", MIGS: "2", EXTENDED: "2"}
        made.put(QUEUES, "all", {"spec": {"capacity": "Nodes"}})
        for team in ("a", "b"):
            made.put(QUEUES, team, {"spec": {"parent": "all", "quota": quota, "namespaces": [team]}})
        made.put(CLASSES, GPU, device_class())
        made.put(TEMPLATES, "one", template(exactly()))
        made.put(TEMPLATES, "two", template(exactly(count=2)))
        await host.update()
        yield made


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        ([exactly(count=3)], {GPUS: 3}),
        ([exactly(), exactly(MIG, 2)], {GPUS: 1, MIGS: 2}),
        ([exactly(allocationMode="All")], {GPUS: 32}),
        ([exactly(adminAccess=True)], {}),
        ([{"firstAvailable": [exactly(count=1)["exactly"], exactly(MIG, 4)["exactly"]]}], {GPUS: 1, MIGS: 4}),
    ],
    ids=["counts", "several classes", "all of them", "for an administrator", "alternatives"],
)
async def test_what_a_claim_counts(teams, requests, devices):
    """As a ResourceQuota counts it: of alternatives the most of each class."""
    teams.put(CLAIMS, "c", claim(*requests))

    await teams.place(pod("p", claims=["c"]))

    assert devices == {name: n for name, n in teams.used().items() if name in {GPUS, MIGS}}


async def test_quota_borrowing_and_reclaim(teams):
    """A team borrows what the other leaves, waits for more, and gives back what the other one wants."""
    await teams.place(*(pod(f"p{i}", templates=["one"]) for i in range(4)))
    assert ({GPUS: "2"}, "4") == (teams.status("a")["borrowed"], teams.status("a")["used"][GPUS])
    more = await refusal(teams.host, pod("p4", templates=["one"]))

    node, victims = await evicted(teams.host, pod("owner", namespace="b", templates=["two"]))

    assert f"Queue a: its quota is used and nothing is left to borrow of {GPUS}: at most 0 of {GPUS}" == more
    assert ("n0", 2) == (node, len(victims))


async def test_devices_that_are_all_in_use(teams):
    """Where a node has none left, as many pods go as hold what is wanted, those of the queue that borrows."""
    await teams.place(*(pod(f"p{i}", templates=["one"]) for i in range(3)), pod("none"))
    none_left = Reason("cannot allocate all claims", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    node, victims = await evicted(teams.host, pod("owner", namespace="b", templates=["one"]), none_left)

    assert ("n0", 1) == (node, len(victims))
    assert victims < {f"pod-a-p{i}" for i in range(3)}


async def test_extended_resources_are_devices_of_their_class(teams):
    """Asked for by either way, they count by both names; and by the name that every class has."""
    teams.put(CLASSES, GPU, device_class(EXTENDED))
    await teams.host.update()

    await teams.place(
        pod("claimed", templates=["one"]),
        pod("requested", **{EXTENDED: "1"}),
        pod("implicit", **{f"deviceclass.resource.kubernetes.io/{GPU}": "1"}),
    )

    assert (3, 3) == (teams.used()[GPUS], teams.used()[EXTENDED])


async def test_a_class_that_changes_changes_what_counts(teams):
    """Pods that are placed count anew when their class gets an extended resource's name, or loses it."""
    await teams.place(pod("p", templates=["one"]), pod("q", **{EXTENDED: "1"}))
    before = teams.used()[GPUS]

    teams.put(CLASSES, GPU, device_class(EXTENDED))
    await teams.host.update()
    named = teams.used()[GPUS]
    teams.remove(CLASSES, GPU)
    await teams.host.update()

    assert (1, 2, 1) == (before, named, teams.used()[GPUS])


async def test_a_template_that_comes_later_counts(teams):
    """A pod that is known before its template counts once it is there."""
    await teams.place(pod("p", templates=["late"]))
    before = teams.used().get(GPUS, 0)

    teams.put(TEMPLATES, "late", template(exactly(count=2)))
    await teams.host.update()

    assert (0, 2) == (before, teams.used()[GPUS])


async def test_a_shared_claim_counts_once(teams):
    """For the pod that was placed first; when it goes, for the next one, whose queue that may be another."""
    teams.put(CLAIMS, "shared", claim(exactly(count=2)))
    first, second = (pod(name, claims=["shared"]) for name in ("first", "second"))
    await teams.place(first, second)
    both = teams.used()[GPUS]

    assert await refusal(teams.host, pod("third", claims=["shared"])) is None
    teams.host.cluster.remove_pod(uid(first))
    await teams.host.update()
    one = teams.used()[GPUS]
    teams.host.cluster.remove_pod(uid(second))
    await teams.host.update()

    assert (2, 2, 0) == (both, one, teams.used().get(GPUS, 0))


async def test_a_gang_that_shares_a_claim_counts_it_once():
    """However many of its pods have to find a place together."""
    plugin = Queues((*KINDS, "CoschedulingPodGroup"))
    async with running(plugin, make_node("n0", allocatable={"cpu": "64", "pods": "110"})) as host:
        teams = Teams(host, plugin)
        teams.put(QUEUES, "a", {"spec": {"quota": {GPUS: "2"}, "namespaces": ["a"]}})
        teams.put(CLAIMS, "shared", claim(exactly(count=2)))
        group = ObjectKey(COSCHEDULING_GROUPS.group, COSCHEDULING_GROUPS.version, "podgroups", "a", "gang")
        host.cluster.put_object(group, {"spec": {"minMember": 3}})
        await host.update()
        shared, own = pod("p", claims=["shared"]), pod("q", templates=["two"])
        for each in (shared, own):
            each["metadata"]["labels"] = {COSCHEDULING_LABEL: "gang"}
        teams.put(TEMPLATES, "two", template(exactly(count=2)))
        await host.update()

        assert await refusal(host, shared) is None
        assert "for 3 pods of a group together: at most 2" in await refusal(host, own)


def member(name, **fields):
    """A pod of the PodGroup `gang`, whose claim `c0` the group has, too."""
    made = pod(name, **fields)
    made["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    return made


def group_of(minimum, *claims):
    entries = [{"name": name, "resourceClaimTemplateName": of} for name, of in claims]
    return {"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}, "resourceClaims": entries}}


async def test_a_claim_of_a_pod_group_counts_once(teams):
    """Its pods have one claim of a template: it counts with the first of them, and after it with the next."""
    await teams.place(member("p", templates=["one"]), member("q", templates=["one", "two"]))
    assert 4 == teams.used()[GPUS]

    teams.put(POD_GROUPS, "gang", group_of(2, ("c0", "one"), ("c1", "one")))
    await teams.host.update()
    assert 3 == teams.used()[GPUS]
    teams.host.cluster.remove_pod(uid(member("p")))
    await teams.host.update()
    assert 3 == teams.used()[GPUS]
    teams.remove(POD_GROUPS, "gang")
    await teams.host.update()
    assert 3 == teams.used()[GPUS]


async def test_a_gang_with_a_claim_of_its_group(teams):
    """All pods that have to find a place together want the group's devices once, and their own each."""
    teams.put(POD_GROUPS, "gang", group_of(3, ("c0", "two")))
    await teams.host.update()

    assert await refusal(teams.host, member("p", templates=["two"])) is None
    text = await refusal(teams.host, member("q", templates=["two", "one"]))
    assert f"for 3 pods of a group together: at most 4 of {GPUS}" in text


async def test_what_can_not_be_read_counts_nothing(teams, caplog):
    """It is logged by its name, and the pod counts with the rest of it."""
    teams.put(CLAIMS, "odd", {"spec": {"devices": {"requests": "many"}}})

    await teams.place(pod("p", claims=["odd"]))

    assert (1000, 0) == (teams.used()["cpu"], teams.used().get(GPUS, 0))
    assert "devices not counted claim=a/odd" in caplog.text


async def test_cost_is_linear_in_the_pods_of_a_claim(teams):
    """Pods that share one claim come and go at the same cost, however many they are."""
    teams.put(CLAIMS, "shared", claim(exactly()))
    await teams.host.update()
    cluster = teams.plugin.cluster

    def come_and_go(count):
        held = _sharing(count)
        for each in held:
            cluster.devices.hold(each)
            cluster.devices.asked(each)
        for each in held:
            cluster._devices_left(each.uid)

    few, many = (calls(lambda count=count: come_and_go(count)) for count in (100, 400))

    assert many < 4.2 * few
    assert 0 == len(cluster.devices._users)


def _sharing(count):
    key = ClaimKey(CLAIMS.resource, "a", "shared")
    return [PodDevices(f"p{i}", {"cpu": 1000}, (key,)) for i in range(count)]
