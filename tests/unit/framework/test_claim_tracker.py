"""Claims ahead of the watch."""

import msgspec

from berth.framework.mirrors.listers import Listers
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.resource_claims import Allocation, ResourceClaim
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.testing.builders import make_pod


def claim(version, *, allocated=False):
    meta = ObjectMeta(name="c", namespace="default", uid="u", resource_version=str(version))
    return ResourceClaim(meta).allocated_as(Allocation() if allocated else None)


def tracker(*stored):
    listers = Listers()
    for one in stored:
        listers.resource_claims.put(one)
    return listers.claim_tracker, listers.resource_claims


def test_an_assumption_holds_until_the_watch_is_as_new():
    """A write's answer counts until the watch brings that version or a newer one."""
    claims, store = tracker(claim(1))
    claims.assume(claim(9, allocated=True))
    assert claims.get("c", "default").allocation

    store.put(claim(8))
    assert claims.get("c", "default").allocation
    store.put(claim(10))
    assert claims.get("c", "default").allocation is None


def test_an_old_answer_is_no_news():
    """What the watch has overtaken is not assumed."""
    claims, _ = tracker(claim(10))
    claims.assume(claim(9, allocated=True))

    assert claims.get("c", "default").allocation is None


def test_a_claim_that_was_just_created():
    """It counts before the watch shows it, and no more once it is deleted."""
    claims, store = tracker()
    claims.assume(claim(3, allocated=True))
    assert [claim(3, allocated=True)] == list(claims)

    store.put(claim(3, allocated=True))
    store.remove(claim(3))
    assert [] == list(claims)


def test_allocations_in_flight():
    """They are held from Reserve until written or let go, once."""
    claims, _ = tracker(claim(1))
    claims.begin(claim(1, allocated=True), make_pod())
    assert claims.in_flight("u").allocation
    assert [True, False] == [claims.end("u", make_pod()), claims.end("u", make_pod())]
    assert [] == list(claims.all_in_flight())


def test_changes_are_reported_in_order():
    """Followers of the claims learn what to look at again."""
    claims, store = tracker(claim(1))
    start = claims.changes.end
    claims.begin(claim(1), make_pod())
    claims.assume(claim(2))
    claims.end("u", make_pod())
    store.put(msgspec.structs.replace(claim(2)))

    reported = [(c.name, c.in_flight) for c in claims.changes.since(start)]
    assert [("u", True), ("default/c", False), ("u", True), ("default/c", False)] == reported


def member(name, group="g"):
    return make_pod(name, scheduling_group=SchedulingGroup(group))


def test_pods_of_a_group_share_what_is_in_flight():
    """kubernetes/kubernetes#137617: held until the last of them lets go, and not for other pods."""
    claims, _ = tracker(claim(1))
    first, second = member("a"), member("b")
    claims.begin(claim(1, allocated=True), first)

    assert [None, None] == [claims.share("u", pod) for pod in (make_pod("c"), member("d", "another"))]
    assert claims.share("u", second).allocation

    claims.end("u", first)
    assert claims.in_flight("u")
    claims.end("u", second)
    assert claims.in_flight("u") is None


def test_what_is_written_is_in_flight_for_no_pod():
    """Its devices count once."""
    claims, _ = tracker(claim(1))
    claims.begin(claim(1, allocated=True), member("a"))
    claims.share("u", member("b"))
    claims.written("u")

    assert [] == list(claims.all_in_flight())
    assert not claims.end("u", member("b"))
