"""Who answers for a pod."""

import json

import msgspec
import pytest

from berth.aggregated_api import kinds
from berth.aggregated_api.errors import NoSuchObjectError, UnavailableError
from berth.aggregated_api.leaders import ANNOTATION, Leader, Published, leaders
from berth.aggregated_api.routing import MAX_ASKED, ExplainRequest, Routing
from berth.client.errors import DeadlineError, NotFoundError

POD = ExplainRequest(kinds.POD, "default", "p")
GROUP = ExplainRequest(kinds.POD_GROUP, "default", "g")
NODE = ExplainRequest(kinds.NODE, "", "n1")


class ApiServer:
    """One pod, and leases."""

    def __init__(self, profile):
        self.profile = profile
        self.leases = []

    async def get(self, _resource, _namespace, name):
        if name != "p":
            raise NotFoundError(404, "NotFound", "no")
        return json.dumps({"spec": {"schedulerName": self.profile}}).encode()

    async def call(self, method, path, *, query):
        assert ("GET", "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases") == (method, path)
        assert 500 == query["limit"]
        return json.dumps({"items": self.leases}).encode()

    def lease(self, name, holder, published, created="2026-01-02T00:00:00Z"):
        """One more lease."""
        annotations = (
            {ANNOTATION: published} if isinstance(published, str) else {ANNOTATION: published.text()}
        )
        metadata = {"name": name, "annotations": annotations, "creationTimestamp": created}
        self.leases.append({"metadata": metadata, "spec": {"holderIdentity": holder}})


class Here:
    """A scheduler with one profile; `group` is the profile of the group's pods."""

    identity = "a"

    def __init__(self, *, leads, knows=True, group=""):
        self._leads = leads
        self._knows = knows
        self._group = group

    def profiles(self):
        return ("ours",)

    def serves(self, profile):
        return profile in self.profiles()

    def leads(self, profile):
        return self._leads and self.serves(profile)

    def leads_any(self):
        return self._leads

    async def profile_of_group(self, _namespace, _name):
        return self._group

    async def explain(self, asked):
        if not self._knows:
            raise LookupError(f"no {asked.name} is known here")
        return {"answered": "here"}


def published(identity="b", *profiles):
    return Published(identity, "10.0.0.2:10259", "ab", profiles or ("ours",))


def routing(profile="ours", *, leads=False, knows=True, group="", known=(), theirs=None):
    """A scheduler beside those of the leases `known`; `theirs` has what these answer, by identity."""
    api = ApiServer(profile)
    for lease in known:
        api.lease(*lease)

    async def send_on(leader, asked):
        answer = (theirs or {}).get(leader.published.identity)
        if isinstance(answer, Exception):
            raise answer
        return answer or {"answered": leader.published.identity, "asked": asked}

    return Routing(
        pods=api,
        here=Here(leads=leads, knows=knows, group=group),
        own_leases={"l"},
        leaders=lambda: leaders(api, "berth-system"),
        send_on=send_on,
        merged=lambda answers, failures: {
            "answered": [one["answered"] for one in answers],
            "failures": list(failures),
        },
    )


async def answered(route, asked=POD, *, was_sent_on=False):
    return (await route.explain(asked, was_sent_on=was_sent_on))["answered"]


async def test_a_lease_of_another_name_speaks_for_no_profile_of_ours():
    """Who may write leases may name any address in one, and any age is younger than what was there."""
    forged = ("a", "evil", published("evil", "ours", "theirs"), "2026-02-01T00:00:00Z")

    assert "b" == await answered(routing(known=[forged, ("l", "b", published())]))
    with pytest.raises(UnavailableError, match="no scheduler leads"):
        await answered(routing(known=[forged]))
    known = [forged, ("m", "c", published("c", "theirs"))]
    assert "c" == await answered(routing("theirs", known=known))


async def test_the_leader_answers():
    assert "here" == await answered(routing(leads=True))


async def test_a_standby_sends_on():
    """With the question as it came."""
    found = await routing(known=[("l", "b", published())]).explain(POD, was_sent_on=False)

    assert {"answered": "b", "asked": POD} == found


async def test_a_standby_does_not_send_on_what_was_sent_on():
    """It names the leader, so that nothing goes round in circles while the lease changes hands."""
    with pytest.raises(UnavailableError, match='stands by: lease l, pods of "ours": b leads'):
        await answered(routing(known=[("l", "b", published())]), was_sent_on=True)


@pytest.mark.parametrize(
    "lease",
    [
        pytest.param(("l", "c", published("b")), id="another process holds it now"),
        pytest.param(("l", "", published("b")), id="given back"),
        pytest.param(("l", "b", "{"), id="damaged"),
        pytest.param(("l", "b", '{"identity": "b"}'), id="incomplete"),
        pytest.param(("l", "b", published("b", "others")), id="other profiles"),
    ],
)
async def test_a_lease_that_names_no_leader(lease):
    """Nothing is sent to whom a lease does not name as its holder."""
    with pytest.raises(UnavailableError, match="no scheduler leads"):
        await answered(routing(known=[lease]))


async def test_a_pod_of_another_scheduler():
    """It is sent on to that scheduler, though this one leads."""
    known = [("l", "b", published("b", "theirs"))]

    assert "b" == await answered(routing("theirs", leads=True, known=known))


async def test_a_pod_of_another_scheduler_between_leaders():
    """It has a scheduler, which has no leader now: that is no reason to say that there is none."""
    for holder in ("", "c"):
        with pytest.raises(UnavailableError, match='no scheduler leads that schedules pods of "theirs"'):
            await answered(routing("theirs", leads=True, known=[("l", holder, published("b", "theirs"))]))


async def test_a_pod_that_no_scheduler_is_for():
    """What is known here is said, and where nothing is, its schedulerName."""
    assert "here" == await answered(routing("x"))
    with pytest.raises(NoSuchObjectError, match='schedulerName "x", which no scheduler of Berth serves'):
        await answered(routing("x", knows=False))


async def test_a_pod_that_was_not_heard_of_yet():
    with pytest.raises(UnavailableError, match="not heard of the pod yet"):
        await answered(routing(leads=True, knows=False))


async def test_no_such_pod():
    with pytest.raises(NoSuchObjectError, match='pod "q" not found in namespace "default"'):
        await routing().explain(ExplainRequest(kinds.POD, "default", "q"), was_sent_on=False)


async def test_leases_that_cannot_be_read():
    route = routing()

    async def unreadable():
        raise DeadlineError("late")

    with pytest.raises(UnavailableError, match="who leads can't be read from the leases: late"):
        await answered(msgspec.structs.replace(route, leaders=unreadable))


async def test_leaders_by_lease():
    """Leases without the annotation are passed over."""
    api = ApiServer("ours")
    api.leases.append({"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "k"}})
    api.lease("l", "b", published())

    assert [Leader("l", published())] == await leaders(api, "berth-system")


@pytest.mark.parametrize("kind", [kinds.PROFILE, kinds.QUEUE])
async def test_a_profile_and_its_queue_are_its_leader_s(kind):
    """Their name says whose they are."""
    ours, theirs = ExplainRequest(kind, "", "ours"), ExplainRequest(kind, "", "theirs")
    known = [("l", "b", published("b", "ours")), ("m", "c", published("c", "theirs"))]

    assert "here" == await answered(routing(leads=True, known=known), ours)
    assert "b" == await answered(routing(known=known), ours)
    assert "c" == await answered(routing(leads=True, known=known), theirs)
    with pytest.raises(NoSuchObjectError, match="no profile x; there are: ours"):
        await answered(routing(leads=True, knows=False, known=known), ExplainRequest(kind, "", "x"))


async def test_a_group_is_its_pods_scheduler_s():
    known = [("l", "b", published("b", "ours")), ("m", "c", published("c", "theirs"))]

    assert "here" == await answered(routing(leads=True, group="ours"), GROUP)
    assert "b" == await answered(routing(group="ours", known=known), GROUP)
    assert "c" == await answered(routing(leads=True, group="theirs", known=known), GROUP)


async def test_a_group_without_pods_is_the_first_scheduler_s_that_knows_it():
    """Of those that follow no groups, none does."""
    known = [("l", "b", published("b", "theirs")), ("m", "c", published("c", "more"))]
    unaware = {"b": NoSuchObjectError("no g")}

    assert "here" == await answered(routing(known=known), GROUP)
    assert "c" == await answered(routing(knows=False, known=known, theirs=unaware), GROUP)
    for was_sent_on, leases in ((True, known), (False, known[:1])):
        route = routing(knows=False, known=leases, theirs=unaware)
        with pytest.raises(NoSuchObjectError, match="no g is known here"):
            await answered(route, GROUP, was_sent_on=was_sent_on)


async def test_a_node_is_every_leader_s():
    """Each is asked once, however many leases it holds, and a former leader is not."""
    known = [
        ("l", "b", published("b", "theirs")),
        ("l2", "b", published("b", "more")),
        ("m", "a", published("a", "ours")),
        ("n", "", published("c", "those")),
    ]

    assert ["here", "b"] == await answered(routing(leads=True, known=known), NODE)
    assert ["b"] == await answered(routing(known=known), NODE)
    assert ["here"] == await answered(routing(leads=True, known=known), NODE, was_sent_on=True)


async def test_a_leader_that_does_not_answer_about_a_node():
    """The others' answer says that it is missing; alone, there is none."""
    known = [("l", "b", published("b", "theirs"))]
    late = {"b": UnavailableError("b is late")}

    assert ["b is late"] == (
        await routing(leads=True, known=known, theirs=late).explain(NODE, was_sent_on=False)
    )["failures"]
    with pytest.raises(UnavailableError, match="b is late"):
        await answered(routing(known=known, theirs=late), NODE)


async def test_a_node_while_nothing_leads():
    with pytest.raises(UnavailableError, match="no scheduler leads"):
        await answered(routing(known=[("l", "", published())]), NODE)


async def test_a_node_that_no_leader_knows():
    known = [("l", "b", published("b", "theirs"))]
    route = routing(leads=True, knows=False, known=known, theirs={"b": NoSuchObjectError("no n1")})

    with pytest.raises(NoSuchObjectError, match="no n1 is known here"):
        await answered(route, NODE)


async def test_few_leaders_are_asked_about_a_node():
    known = [(f"l{i}", f"s{i}", published(f"s{i}", f"p{i}")) for i in range(MAX_ASKED + 5)]

    assert MAX_ASKED == len(await answered(routing(known=known), NODE))


@pytest.mark.parametrize("kind", [kinds.PROFILE, kinds.QUEUE], ids=lambda kind: kind.resource)
async def test_a_profile_that_is_not_there(kind):
    """All that there are, of every scheduler, are named once each, in words and as names."""
    known = [("l", "b", published()), ("m", "c", published("c", "theirs", "ours"))]
    with pytest.raises(NoSuchObjectError, match=r"no profile none; there are: ours, theirs$") as caught:
        await routing(known=known).explain(ExplainRequest(kind, "", "none"), was_sent_on=False)

    assert ("ours", "theirs") == caught.value.names
