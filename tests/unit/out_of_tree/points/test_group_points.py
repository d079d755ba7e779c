"""What a sidecar says of a pod group as a whole: whether it may go, and who could be evicted for it."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import msgspec
import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.evaluation.points.placement_plugins import run_placement_feasible
from berth.framework.interface import PlacementProgress, PodGroupPostFilterResult
from berth.framework.preempting import GroupPreemptionRequest
from berth.framework.status import Code, Status, unschedulable
from berth.objects.api_object import ObjectMeta
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.limits import GROUP_PROPOSALS, PROGRESS
from berth.preemption.group_proposals import GroupProposals
from berth.snapshot.pod_group_states import TreeKey
from berth_plugin_proto import common_pb2, group_pb2, identity_pb2
from berth_sdk import testing as documents
from tests.unit.out_of_tree.points.placing import GROUP, group_cycle, member
from tests.unit.out_of_tree.scripted import NAME, SUCCESS, Scripted, hosted

FEASIBLE = identity_pb2.EXTENSION_POINT_PLACEMENT_FEASIBLE
POST_FILTER = identity_pb2.EXTENSION_POINT_POD_GROUP_POST_FILTER
WAIT = common_pb2.Status(code=common_pb2.CODE_WAIT, reasons=["not yet"])


def needs(count, asked):
    """A plugin's verdicts for a group of which that many pods have to be placed."""

    def judge(request):
        asked.append([(each.remaining, each.scheduled) for each in request.progress])
        never = common_pb2.Status(code=common_pb2.CODE_UNSCHEDULABLE, reasons=["too few"])
        verdicts = [
            SUCCESS if each.scheduled >= count else WAIT if sum_of(each) >= count else never
            for each in request.progress
        ]
        return group_pb2.PlacementFeasibleResponse(verdicts=verdicts)

    return judge


def sum_of(progress):
    return progress.remaining + progress.scheduled


def as_coroutine(reply):
    """An answer as the scripted plugin gives it."""

    async def answer(request, _context):
        return reply(request)

    return answer


@asynccontextmanager
async def judging(reply, **options):
    """A sidecar that judges groups, and how an attempt at the group asks it."""
    plugin = Scripted(FEASIBLE)
    plugin.replies["PlacementFeasible"] = as_coroutine(reply)
    async with hosted(plugin, **options) as harness:
        await harness.up()
        harness.pod("p")
        state, framework = group_cycle(member("p"), member("q")), SimpleNamespace()
        framework.placement_feasible = [harness.plugin]

        async def ask(remaining, scheduled, key=GROUP):
            progress = PlacementProgress(remaining, scheduled)
            return await run_placement_feasible(framework, state, key, progress)

        yield ask


async def test_one_call_is_about_all_that_comes_of_pods_that_find_nodes():
    """Only where one finds none is there another call."""
    asked = []
    async with judging(needs(3, asked)) as ask:
        codes = [(await ask(4 - n, n)).code for n in range(5)]
        less = [(await ask(*each)).code for each in ((2, 1), (1, 2), (0, 2), (1, 1))]

    assert [Code.WAIT] * 3 + [Code.SUCCESS] * 2 == codes
    assert [Code.WAIT, Code.WAIT, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE] == less
    assert [
        [(4, 0), (3, 1), (2, 2), (1, 3), (0, 4)],
        [(2, 1), (1, 2), (0, 3)],
        [(0, 2)],
        [(1, 1), (0, 2)],
    ] == asked


async def test_a_call_has_a_bound():
    """A group of more pods takes several."""
    asked = []
    async with judging(needs(1, asked)) as ask:
        await ask(3 * PROGRESS, 0)

    assert [PROGRESS] == [len(each) for each in asked]


async def test_a_tree_is_not_judged_by_a_sidecar():
    """The protocol has no CompositePodGroups."""
    asked = []
    async with judging(needs(9, asked)) as ask:
        assert (await ask(1, 0, TreeKey("default", "tree"))).ok

    assert [] == asked


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ([], "PlacementFeasible has 0 verdicts on 2 numbers of pods"),
        (
            [SUCCESS, common_pb2.Status(code=common_pb2.CODE_SKIP)],
            "says Skip, which is no verdict on a group",
        ),
        ([SUCCESS, common_pb2.Status(code=common_pb2.CODE_ERROR, reasons=["broken"])], "says Error: broken"),
    ],
)
async def test_verdicts_that_are_none(verdicts, words):
    """The attempt at the group fails, and says which plugin did not keep the protocol."""
    reply = group_pb2.PlacementFeasibleResponse(verdicts=verdicts)
    async with judging(lambda _: reply) as ask:
        status = await ask(1, 0)

    assert (Code.ERROR, True) == (status.code, words in status.message)


async def test_failures_that_are_ignored():
    """By Permit's policy, in whose place the verdicts are: the group goes as the other plugins say."""
    policy = {ExtensionPoint.PERMIT: FailurePolicy.IGNORE}
    async with judging(lambda _: group_pb2.PlacementFeasibleResponse(), policy=policy) as ask:
        assert (await ask(1, 0)).ok


class Room:
    """Implements GroupTrial: the group fits once all of `needed` are out."""

    def __init__(self, *needed):
        self.needed, self.out, self.found = set(needed), set(), {"pod-default-p": "n0"}
        self.tries = []

    def take_out(self, pod):
        self.out.add(pod.pod.uid)

    def put_back(self, pod):
        self.out.remove(pod.pod.uid)

    async def fits(self):
        self.tries.append(set(self.out))
        return Status(Code.SUCCESS) if self.needed <= self.out else unschedulable("no room")


class Evictions:
    """Stands for what evicts pods: of that nothing is the subject here."""

    def __init__(self):
        self.victims = None

    async def evict_for(self, plugin, _preemptor, candidate):
        self.plugin, self.victims = plugin, [pod.name for pod in candidate.victims]
        return Status(Code.SUCCESS)

    async def evict_for_group(self, request: GroupPreemptionRequest, proposals):
        return await GroupProposals(None, self).run(request, proposals)


def proposing(*proposals, status=SUCCESS, generation=0):
    """An answer that proposes these pods, by name."""

    def propose(request):
        sets = [group_pb2.GroupPreemption(victim_uids=uids) for uids in proposals]
        number = generation or request.call.generation
        return group_pb2.PodGroupPostFilterResponse(generation=number, status=status, proposals=sets)

    return propose


async def asked_for_room(reply, trial, **options):
    """What comes of asking a sidecar for room for the group, with pods a, b and c on nodes."""
    plugin = Scripted(POST_FILTER)
    plugin.replies["PodGroupPostFilter"] = as_coroutine(reply)
    async with hosted(plugin, **options) as harness:
        await harness.up()
        harness.pod("p")
        for name, node in (("a", "n0"), ("b", "n1"), ("c", "n2")):
            document = documents.make_pod(name)
            document["spec"]["nodeName"] = node
            harness.cache.add_pod(decode_pod(msgspec.json.encode(document)))
        harness.step()
        evictions = Evictions()
        harness.handle.preemption = evictions
        members = [member("p"), member("q")]
        group = PodGroup(ObjectMeta(name=GROUP.name, namespace=GROUP.namespace))
        result = await harness.plugin.pod_group_post_filter(group_cycle(*members), group, members, trial)
        return result, evictions.victims


def uids(names):
    return [f"pod-default-{name}" for name in names]


async def test_the_first_proposal_is_carried_out_by_which_the_group_fits():
    """It is tried in their order; of the others no pod is evicted."""
    trial = Room(*uids("bc"))
    reply = proposing(uids("a"), uids("cb"), uids("abc"))
    result, victims = await asked_for_room(reply, trial)

    assert ["c", "b"] == victims
    assert [set(uids("a")), set(uids("bc"))] == trial.tries
    text = "pod group preemption: found a placement for podgroup, preempting 2 victims"
    assert (Code.SUCCESS, text) == (result.status.code, result.status.message)
    assert {"pod-default-p": "n0"} == {uid: each.node_name for uid, each in result.nominations.items()}


async def test_no_proposal_by_which_the_group_fits():
    """Nothing is evicted, and the condition says what the group lacks without the last victims."""
    trial = Room("another")
    result, victims = await asked_for_room(proposing(uids("a"), uids("b")), trial)

    assert (None, set()) == (victims, trial.out)
    text = f"plugin {NAME} would evict pods for the group, which would not fit without them: no room"
    assert (Code.UNSCHEDULABLE, text) == (result.status.code, result.status.message)


async def test_room_that_is_on_its_way():
    """Without a proposal the group waits, and its pods keep what they are nominated to."""
    result, victims = await asked_for_room(proposing(), Room())

    assert (PodGroupPostFilterResult(Status(Code.SUCCESS, (), NAME)), None) == (result, victims)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (proposing(uids("a"), status=WAIT), "PodGroupPostFilter says Wait: not yet"),
        (proposing(uids("ax")), "names pod-default-x as a victim, which is on no node"),
        (proposing(uids("aa")), "names a victim twice"),
        (proposing([]), "proposes to evict no pod"),
        (proposing(*[uids("a")] * (GROUP_PROPOSALS + 1)), f"at most {GROUP_PROPOSALS} are tried"),
        (proposing(uids("a"), generation=99), "generation 99"),
    ],
)
async def test_proposals_that_are_none(reply, words):
    """By default the next plugin is asked; the condition says what was wrong."""
    result, victims = await asked_for_room(reply, Room())

    assert (Code.UNSCHEDULABLE, None) == (result.status.code, victims)
    assert words in result.status.message
