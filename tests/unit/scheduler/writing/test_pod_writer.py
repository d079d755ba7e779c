# ruff: noqa: ARG002 - the fake server has the client's signatures
"""A binding is certain or known to have failed; a status patch says something."""

import asyncio

import msgspec
import pytest

from berth.client.errors import AmbiguousError, ConflictError, NotFoundError, ServerError
from berth.client.pods import Ambiguous, Bound, Conflict, NotFound, Rejected
from berth.client.wire import encode
from berth.framework.handle import PodGoneError
from berth.objects.pods.pod import PodCondition
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.writing.pod_writer import REFUSALS, BindFailedError, PodWriter
from berth.testing.builders import make_pod

POD = make_pod()
CUT = Ambiguous(AmbiguousError("connection lost"))


class Server:
    """A pod behind an API with scripted answers; `lands` says which tries take effect, with any answer."""

    def __init__(self, *answers, lands=(), node="", uid=POD.uid, reads=(), leaving=False):
        self.answers, self.lands, self.node, self.uid = list(answers), set(lands), node, uid
        self.reads, self.leaving = list(reads), leaving
        self.binds, self.gets, self.patches, self.naps = 0, 0, [], 0
        self.preconditions, self.conflicts = [], 0

    def bind(self, namespace, name, uid, node, *, answered, annotations):
        assert (POD.namespace, POD.name, POD.uid, {}) == (namespace, name, uid, annotations)
        self.binds += 1
        if self.binds in self.lands:
            self.node = node
        answered(self.answers.pop(0))

    async def get(self, namespace, name):
        self.gets += 1
        if self.reads:
            raise self.reads.pop(0)
        if not self.uid:
            raise NotFoundError(404, "NotFound", f"{namespace}/{name} not found")
        metadata = {"namespace": namespace, "name": name, "uid": self.uid, "resourceVersion": "8"}
        if self.leaving:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return encode({"metadata": metadata, "spec": {"nodeName": self.node}})

    async def patch_status(self, namespace, name, patch, *, uid, version):
        self.preconditions.append((uid, version))
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError(409, "Conflict", "the object has been modified")
        self.patches.append(patch["status"])

    async def sleep(self, seconds):
        self.naps += 1


async def bind(server):
    async with asyncio.TaskGroup() as tasks:
        background = AsyncioBackground(tasks)
        bound = background.outcome()
        PodWriter(server, background, sleep=server.sleep).bind(POD, "n1", bound.set)
        error = await bound
    if error is not None:
        raise error
    return server.binds, server.gets


async def test_a_confirmed_binding_needs_no_reading():
    assert (1, 0) == await bind(Server(Bound(), lands=[1]))


async def test_an_open_answer_is_cleared_up_by_reading():
    assert (1, 1) == await bind(Server(CUT, lands=[1]))


async def test_a_binding_that_did_not_land_is_sent_again():
    server = Server(CUT, CUT, Bound(), lands=[3])

    assert (3, 2) == await bind(server)
    assert 2 == server.naps


async def test_a_first_try_that_lands_late_is_found_by_the_second():
    """The second try meets a conflict with the first: that is our own binding."""
    server = Server(CUT, Conflict("already assigned"))
    server.lands = {2}

    assert (2, 2) == await bind(server)


async def test_reading_goes_on_until_it_tells():
    server = Server(CUT, lands=[1], reads=[AmbiguousError("cut"), ServerError(503, "", "down")])

    assert (1, 3) == await bind(server)


async def test_a_try_that_lands_after_the_read_is_found_whatever_the_next_one_meets():
    """The first try lands late; the second is refused for another reason, and the pod is read once more."""
    server = Server(CUT, Rejected(403, "forbidden"), lands=[2])

    assert (2, 2) == await bind(server)


WEBHOOK = Ambiguous(ServerError(500, "InternalError", "failed calling webhook"))
MODIFIED = Conflict("the object has been modified")


@pytest.mark.parametrize(("answer", "words"), [(WEBHOOK, "calling webhook"), (MODIFIED, "been modified")])
async def test_a_server_that_keeps_refusing_is_believed(answer, words):
    """Errors of the server's own and conflicts, with the pod on no node: it goes back to the queue."""
    server = Server(*[answer] * 9)
    with pytest.raises(BindFailedError, match=words):
        await bind(server)

    assert (REFUSALS, REFUSALS) == (server.binds, server.gets)


async def test_a_conflict_is_tried_again():
    """Another write to the pod that came in between costs a try, not the attempt (#138855)."""
    server = Server(MODIFIED, MODIFIED, Bound(), lands=[3])

    assert (3, 2) == await bind(server)


@pytest.mark.parametrize("lost", [CUT, Ambiguous(ServerError(504, "Timeout", "upstream request timeout"))])
async def test_a_try_without_a_known_outcome_is_never_given_up(lost):
    """It may yet arrive, so that no other node may be tried."""
    server = Server(*[lost] * 20, Bound(), lands=[21])

    assert (21, 20) == await bind(server)


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (Server(Conflict("already assigned"), node="n2"), "already assigned to node n2"),
        (Server(CUT, node="n2"), "already assigned to node n2"),
        (Server(CUT, uid=""), "is gone"),
        (Server(CUT, uid="another"), "is gone"),
        (Server(Conflict("uid differs"), uid="another"), "is gone"),
        (Server(Conflict("being deleted"), leaving=True), "being deleted"),
        (Server(CUT, leaving=True), "being deleted"),
        (Server(NotFound("no such pod")), "no such pod"),
        (Server(Rejected(403, "forbidden")), "forbidden"),
    ],
    ids=[
        "conflict, other node",
        "open, other node",
        "open, gone",
        "open, recreated",
        "conflict, recreated",
        "conflict, going",
        "open, going",
        "not found",
        "refused",
    ],
)
async def test_a_binding_that_cannot_land_fails_once(server, text):
    with pytest.raises(BindFailedError, match=text):
        await bind(server)
    assert 1 == server.binds


# Status patches.

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def condition(**changed):
    fields = {"status": "False", "reason": "Unschedulable", "message": "no room", **changed}
    return PodCondition(type="PodScheduled", last_transition_time=NOW, **fields)


def pod_with(*conditions, nominated=""):
    pod = make_pod(nominated_node_name=nominated)
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version="7"))
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions))


HELD = PodCondition("PodScheduled", "False", "Unschedulable", "no room", last_transition_time=THEN)


async def patched(pod, condition_=None, nominated=None):
    server = Server()
    await PodWriter(server, None, sleep=server.sleep).patch_pod_status(pod, condition_, nominated)
    return server.patches


@pytest.mark.parametrize(
    ("pod", "new", "nominated"),
    [
        (pod_with(HELD), condition(), None),
        (pod_with(HELD), condition(observed_generation=7), None),
        (pod_with(), None, None),
        (pod_with(nominated="n1"), None, "n1"),
        (pod_with(), None, ""),
        (pod_with(HELD, nominated="n1"), condition(), None),
    ],
    ids=["same condition", "only generation", "nothing", "same node", "still none", "nomination kept"],
)
async def test_what_changes_nothing_is_not_sent(pod, new, nominated):
    assert [] == await patched(pod, new, nominated)


async def test_a_first_condition_is_sent_whole():
    assert [
        {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no room",
                    "lastTransitionTime": NOW,
                    "observedGeneration": 3,
                }
            ]
        }
    ] == await patched(pod_with(), condition(observed_generation=3))


@pytest.mark.parametrize(
    ("held", "moved"),
    [
        (HELD, False),
        (PodCondition("PodScheduled", "True", "Unschedulable", "no room", last_transition_time=THEN), True),
    ],
    ids=["same status", "other status"],
)
async def test_the_transition_time_moves_with_the_status_only(held, moved):
    [status] = await patched(pod_with(held), condition(message="other words"))

    assert (NOW if moved else THEN) == status["conditions"][0]["lastTransitionTime"]


@pytest.mark.parametrize(("held", "wanted", "sent"), [("", "n1", "n1"), ("n1", "n2", "n2"), ("n1", "", None)])
async def test_a_nomination_that_differs_is_written_or_taken_back(held, wanted, sent):
    assert [{"nominatedNodeName": sent}] == await patched(pod_with(nominated=held), None, wanted)


async def test_a_waiting_pod_is_written_to_as_long_as_it_waits():
    """kubernetes/kubernetes#139417: its version is the precondition; another one is read anew."""
    server = Server()
    server.conflicts = 1
    await PodWriter(server, None, sleep=server.sleep).patch_pod_status(pod_with(), condition(), None)

    assert [(POD.uid, "7"), (POD.uid, "8")] == server.preconditions
    assert 1 == len(server.patches)


async def test_a_late_status_does_not_land_on_a_bound_pod():
    server = Server(node="n1")
    server.conflicts = 1
    await PodWriter(server, None, sleep=server.sleep).patch_pod_status(pod_with(), condition(), None)

    assert ([], 1) == (server.patches, server.gets)


async def test_a_late_status_does_not_land_on_another_pod_of_the_name():
    server = Server(uid="another")
    server.conflicts = 1
    with pytest.raises(PodGoneError):
        await PodWriter(server, None, sleep=server.sleep).patch_pod_status(pod_with(), condition(), None)

    assert [] == server.patches


async def test_a_victims_status_has_no_version_as_precondition():
    """Its kubelet writes it all the time."""
    server = Server()
    await PodWriter(server, None, sleep=server.sleep).patch_pod_status(
        pod_with().placed_on("n1"), condition(), None
    )

    assert [(POD.uid, "")] == server.preconditions
