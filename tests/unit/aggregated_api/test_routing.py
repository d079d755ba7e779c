"""Who answers for a pod."""

import json

import pytest

from berth.aggregated_api.errors import NoSuchPodError, UnavailableError
from berth.aggregated_api.leaders import ANNOTATION, Leader, Published, leaders
from berth.aggregated_api.routing import Asked, Routing
from berth.client.errors import DeadlineError, NotFoundError

POD = Asked("default", "p")


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

    def lease(self, name, holder, published):
        """One more lease."""
        annotations = (
            {ANNOTATION: published} if isinstance(published, str) else {ANNOTATION: published.text()}
        )
        metadata = {"name": name, "annotations": annotations}
        self.leases.append({"metadata": metadata, "spec": {"holderIdentity": holder}})


class Here:
    """A scheduler with one profile."""

    def __init__(self, *, leads, knows=True):
        self._leads = leads
        self._knows = knows

    def serves(self, profile):
        return profile == "ours"

    def leads(self, profile):
        return self._leads and self.serves(profile)

    async def explain(self, asked):
        if not self._knows:
            raise LookupError(f"no pod {asked.name}")
        return {"answered": "here"}


def published(identity="b", *profiles):
    return Published(identity, "10.0.0.2:10259", "ab", profiles or ("ours",))


def routing(profile="ours", *, leads=False, knows=True, known=()):
    api = ApiServer(profile)
    for name, holder, said in known:
        api.lease(name, holder, said)

    async def send_on(leader, asked):
        return {"answered": leader.published.identity, "asked": asked}

    return Routing(
        pods=api,
        here=Here(leads=leads, knows=knows),
        leaders=lambda: leaders(api, "berth-system"),
        send_on=send_on,
    )


async def answered(route, *, was_sent_on=False):
    return (await route.explain(POD, was_sent_on=was_sent_on))["answered"]


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
    with pytest.raises(NoSuchPodError, match='schedulerName "x", which no scheduler of Berth serves'):
        await answered(routing("x", knows=False))


async def test_a_pod_that_was_not_heard_of_yet():
    with pytest.raises(UnavailableError, match="not heard of the pod yet"):
        await answered(routing(leads=True, knows=False))


async def test_no_such_pod():
    with pytest.raises(NoSuchPodError, match='pod "q" not found in namespace "default"'):
        await routing().explain(Asked("default", "q"), was_sent_on=False)


async def test_leases_that_cannot_be_read():
    route = routing()

    async def unreadable():
        raise DeadlineError("late")

    with pytest.raises(UnavailableError, match="can't read who leads: late"):
        await answered(Routing(pods=route.pods, here=route.here, leaders=unreadable, send_on=route.send_on))


async def test_leaders_by_lease():
    """Leases without the annotation are passed over."""
    api = ApiServer("ours")
    api.leases.append({"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "k"}})
    api.lease("l", "b", published())

    assert [Leader("l", published())] == await leaders(api, "berth-system")
