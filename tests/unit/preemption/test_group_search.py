"""Whom a group evicts, tried on a cluster that is nothing but a number of CPUs (core 6.8)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.framework.mirrors.group_trees import GroupTrees
from berth.framework.mirrors.listers import Store
from berth.framework.status import SUCCESS, unschedulable
from berth.objects.decode import from_document
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod_decoding import pod_from_document
from berth.preemption.group_search import NO_VICTIMS, GroupSearch
from berth.preemption.units import Unit, victim_units
from berth.preemption.victims import CompiledBudgets, Seniority
from berth.snapshot.pod_info import PodInfo
from berth.testing.builders import make_pod


class Pool:
    """So many CPUs, those that pods hold, and a group that wants some; `tries` counts its tries."""

    def __init__(self, cpus, placed, wanted):
        self.free, self.wanted = cpus - sum(cpu_of(info) for info in placed), wanted
        self.tries = 0

    def take_out(self, pod):
        self.free += cpu_of(pod)

    def put_back(self, pod):
        self.free -= cpu_of(pod)

    async def fits(self):
        self.tries += 1
        return SUCCESS if self.free >= self.wanted else unschedulable("full")

    async def still_fits(self):
        return (await self.fits()).ok


def cpu_of(info):
    return int(info.pod.spec.containers[0].resources.requests["cpu"])


def pod(number, priority=0, cpu=1):
    return PodInfo(make_pod(f"p{number}", priority=priority, requests={"cpu": str(cpu)}, node_name="n0"))


def search(pool):
    return GroupSearch(pool, CompiledBudgets(Store()), Seniority(0.0))


def units_of(pods):
    return [Unit((info,), info.pod.priority) for info in pods]


def one_by_one(pods, pool):
    """The victims by the letter: each pod comes back in turn, the most important first, where that can be."""
    for info in pods:
        pool.take_out(info)
    gone = []
    for unit in sorted(units_of(pods), key=lambda unit: unit.importance(Seniority(0.0))):
        (info,) = unit.pods
        pool.put_back(info)
        if pool.free < pool.wanted:
            pool.take_out(info)
            gone.append(info.uid)
    return gone


drawn = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=20)


@given(drawn=drawn, wanted=st.integers(1, 20))
@settings(deadline=None)
async def test_trying_many_at_once_finds_the_same_victims(drawn, wanted):
    """As long as a pod that stays never helps the group, halves are as good as one by one."""
    pods = [pod(i, priority, cpu) for i, (priority, cpu) in enumerate(drawn)]
    cpus = sum(cpu for _, cpu in drawn)
    found = await search(Pool(cpus, pods, wanted)).candidate(units_of(pods))

    if wanted > cpus:
        assert "full" == found.message
    else:
        assert one_by_one(pods, Pool(cpus, pods, wanted)) == [victim.uid for victim in found.victims]


async def test_few_victims_among_many_take_few_tries():
    """Of a thousand pods two have to go: that takes dozens of tries, not a thousand."""
    pods = [pod(i, priority=i) for i in range(1000)]
    pool = Pool(1000, pods, 2)
    found = await search(pool).candidate(units_of(pods))

    assert ["default-p1", "default-p0"] == [victim.uid for victim in found.victims]
    assert 40 > pool.tries


async def test_without_units_nothing_is_tried():
    """A group that no pod is less important than gets that message."""
    pool = Pool(0, [], 1)

    assert NO_VICTIMS is await search(pool).candidate([])
    assert 0 == pool.tries


def test_a_unit_counts_with_its_groups_priority():
    """The pods of a group that goes as a whole are one unit; those of others are units of its priority."""
    groups = Store()
    documents = {"w": ("PodGroup", 7), "v": ("Pod", 3), "u": ("Pod", 99), "g": ("Pod", 8)}
    for name, (mode, priority) in documents.items():
        spec = {"disruptionMode": mode, "priority": priority}
        metadata = {"name": name, "namespace": "default", "uid": name}
        groups.put(from_document({"metadata": metadata, "spec": spec}, PodGroup))
    placed = [member("a", "w", 50), member("b", "w", 0), member("c", "v", 50), member("d", "u", 3), pod(1, 8)]
    units = victim_units(placed, GroupTrees(groups, Store()), groups.get("g", "default"))

    assert {("a", "b"): 7, ("c",): 3} == {tuple(i.pod.name for i in u.pods): u.priority for u in units}


def member(name, group, priority):
    scheduling_group = {"podGroupName": group}
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulingGroup": scheduling_group, "priority": priority, "nodeName": "n0"},
    }
    return PodInfo(pod_from_document(document))
