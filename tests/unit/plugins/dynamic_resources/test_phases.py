"""DynamicResources from PreEnqueue to PreBind, beside the search itself."""

from datetime import UTC, datetime

import msgspec
import pytest

from berth.config.duration import Duration
from berth.config.plugin_args import DynamicResourcesArgs
from berth.config.releases.rules import RULES
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.cluster_event import EventResource, QueueingHint
from berth.framework.status import Code
from berth.objects.pods.pod_spec import Container, PodResourceClaim, Resources
from berth.plugins.dynamic_resources import DynamicResources
from berth.plugins.dynamic_resources.hints import (
    concerned_by_change,
    concerned_by_deletion,
    concerned_by_pod,
)
from berth.queue.requeueing.hints import build_hint_map
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from tests.unit.plugins.dynamic_resources.kit import (
    Cluster,
    allocated,
    claiming,
    device,
    make_claim,
    make_class,
    make_slice,
    on_node,
    request,
    with_status,
)

PLAIN = make_pod("plain")


def from_template():
    entry = PodResourceClaim("e0", resource_claim_template_name="t0")
    return make_pod("p0", uid="p0", resource_claims=(entry,))


async def test_a_pod_without_claims_passes_untouched():
    """Every point has nothing to do, except for PostFilter's part of the message (1.4)."""
    cluster = Cluster()

    assert cluster.plugin.pre_enqueue(PLAIN).ok
    assert cluster.pre_filter(PLAIN).skip
    assert [0, 0] == cluster.plugin.score(cluster.state, PLAIN, cluster.nodes).tolist()
    assert cluster.plugin.reserve(cluster.state, PLAIN, "n0").ok
    assert cluster.plugin.pre_bind_pre_flight(cluster.state, PLAIN, "n0").status.skip
    assert cluster.plugin.sign_pod(PLAIN) != cluster.plugin.sign_pod(claiming("c0"))
    status = (await cluster.plugin.post_filter(cluster.state, PLAIN, Diagnosis())).status
    assert (Code.UNSCHEDULABLE, "no new claims to deallocate") == (status.code, status.message)


async def test_pre_bind_without_a_pre_flight():
    """Before 1.34, and without NominatedNodeNameForExpectation, pods without claims are not skipped."""
    assert (await Cluster().plugin.pre_bind(CycleState(), PLAIN, "n0")).ok


async def test_post_filter_without_pre_filter():
    """An earlier plugin that ended PreFilter leaves this one without state (1.4, quirk 14)."""
    status = (await Cluster().plugin.post_filter(CycleState(), PLAIN, Diagnosis())).status

    assert (Code.ERROR, "not found") == (status.code, status.message)


@pytest.mark.parametrize(
    ("pod", "claims", "text"),
    [
        pytest.param(claiming("c0"), [], 'could not find ResourceClaim "default/c0"', id="no claim"),
        pytest.param(from_template(), [], 'pod "default/p0": ResourceClaim not created yet', id="no status"),
        pytest.param(with_status(from_template(), {"name": "e0"}), [], "", id="needs no claim"),
        pytest.param(
            with_status(from_template(), {"name": "e0", "resourceClaimName": "c0"}),
            [make_claim(owner="p0")],
            "",
            id="made from the template",
        ),
        pytest.param(
            with_status(from_template(), {"name": "e0", "resourceClaimName": "c0"}),
            [make_claim(owner="another")],
            "ResourceClaim default/c0 was not created for Pod default/p0 (Pod is not owner)",
            id="another pod's",
        ),
        pytest.param(
            make_pod("p0", resource_claims=(PodResourceClaim("e0"),)),
            [],
            'pod "default/p0", spec.resourceClaim "e0": none of the supported fields are set',
            id="neither field",
        ),
    ],
)
def test_pre_enqueue_resolves_claims(pod, claims, text):
    """A pod waits outside the queue until all of its claims are there."""
    status = Cluster(claims=claims).plugin.pre_enqueue(pod)

    assert text == status.message
    assert status.code is (Code.UNSCHEDULABLE_AND_UNRESOLVABLE if text else Code.SUCCESS)


def test_what_opens_the_gate():
    """Only claims and what was made for the pod: no slice has thousands of gated pods looked at."""
    events = build_hint_map([Cluster().plugin]).gate_events_of("DynamicResources")

    assert {EventResource.RESOURCE_CLAIM, EventResource.POD} == {event.resource for event in events}


def test_pre_enqueue_and_deleted_claims():
    """A claim that is being deleted is as good as none."""
    claim = make_claim()
    gone = msgspec.structs.replace(claim.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    cluster = Cluster(claims=[msgspec.structs.replace(claim, metadata=gone)])

    assert 'resourceclaim "c0" is being deleted' == cluster.plugin.pre_enqueue(claiming("c0")).message


@pytest.mark.parametrize(
    ("requests", "code", "text"),
    [
        pytest.param(
            [request(deviceClassName="none")],
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r0: device class none does not exist",
            id="no such class",
        ),
        pytest.param(
            [{"name": "r0", "firstAvailable": [{"name": "s0", "deviceClassName": "none"}]}],
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r0/s0: device class none does not exist",
            id="no such class in an alternative",
        ),
        pytest.param(
            [{"name": "r0"}],
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "resource claim default/c0, request r0: unknown request type",
            id="neither form",
        ),
        pytest.param(
            [request(deviceClassName="")], Code.ERROR, "request r0: unsupported request type", id="no class"
        ),
    ],
)
def test_pre_filter_checks_requests(requests, code, text):
    """Requests name classes that exist."""
    status = Cluster(claims=[make_claim(requests=requests)]).pre_filter(claiming("c0"))

    assert (code, text) == (status.code, status.message)


async def test_post_filter_after_a_failed_pre_filter():
    """PreFilter that ends early leaves PostFilter without claims, as kube-scheduler's own words show."""
    cluster = Cluster(claims=[make_claim(requests=[request(deviceClassName="none")])])
    pod = claiming("c0")
    assert not cluster.pre_filter(pod).ok

    status = (await cluster.plugin.post_filter(cluster.state, pod, Diagnosis())).status

    assert (Code.UNSCHEDULABLE, "no new claims to deallocate") == (status.code, status.message)


def test_a_claim_in_flight_is_waited_for():
    """Two pods do not allocate one claim at the same time."""
    cluster = Cluster(slices=[make_slice("s0", [device("a")])], claims=[make_claim()])
    cluster.reserved(claiming("c0"), "n0")

    assert (
        "resource claim default/c0 is in the process of being allocated"
        == cluster.pre_filter(claiming("c0")).message
    )


def test_allocated_claims_hold_the_pod_to_their_nodes():
    """A claim that has its devices can be used where its node selector says."""
    claim = allocated("c0", ("s0", "a"), selector=on_node("n1"))
    reasons = Cluster(claims=[claim]).reasons(claiming("c0"))

    assert {"n0": "resourceclaim not available on the node", "n1": ""} == reasons


@pytest.mark.parametrize(
    ("reserved", "text", "calls"),
    [
        pytest.param((), "deallocation of ResourceClaim completed", [("deallocate", "c0")], id="no pod's"),
        pytest.param(
            ("p0",), "deallocation of ResourceClaim completed", [("deallocate", "c0")], id="only its own"
        ),
        pytest.param(("p0", "other"), "still not schedulable", [], id="another pod's, too"),
    ],
)
async def test_post_filter_deallocates(reserved, text, calls):
    """Devices that keep the pod away from nodes are given up, unless another pod uses them."""
    claim = allocated("c0", ("s0", "a"), reserved=reserved, selector=on_node("other-node"))
    cluster = Cluster(claims=[claim])
    cluster.reasons(claiming("c0"))

    assert text == (await cluster.post_filter(claiming("c0"))).message
    assert calls == cluster.writer.calls


async def test_pre_bind_writes_what_reserve_held():
    """From in flight to written: the devices are never free in between."""
    cluster = Cluster(slices=[make_slice("s0", [device("a")])], claims=[make_claim()])
    pod = claiming("c0")
    cluster.reserved(pod, "n0")
    flight = cluster.plugin.pre_bind_pre_flight(cluster.state, pod, "n0")
    assert (True, True) == (flight.status.ok, flight.allow_parallel)

    assert (await cluster.plugin.pre_bind(cluster.state, pod, "n0")).ok
    assert [("reserve", "c0", True)] == cluster.writer.calls
    assert [] == list(cluster.listers.claim_tracker.all_in_flight())
    assert cluster.listers.claim_tracker.get("c0", "default").reserved_for_any(("p0",))
    cluster.listers.resource_claims.put(make_claim("c1"))
    assert [] == cluster.fits(claiming("c1"))


async def test_unreserve_lets_go():
    """A pod that is not bound after all holds nothing, in memory or in the API."""
    cluster = Cluster(slices=[make_slice("s0", [device("a")])], claims=[make_claim(), make_claim("c1")])
    pod = claiming("c0")
    cluster.reserved(pod, "n0")
    await cluster.plugin.unreserve(cluster.state, pod, "n0")
    assert ["n0", "n1"] == cluster.fits(claiming("c1"))
    assert [] == cluster.writer.calls

    cluster.reserved(pod, "n0")
    await cluster.plugin.pre_bind(cluster.state, pod, "n0")
    await cluster.plugin.unreserve(cluster.state, pod, "n0")
    assert ("unreserve", "c0") == cluster.writer.calls[-1]


def binding_claim(*conditions, since=0):
    result = {
        "request": "r0",
        "driver": "gpu.example",
        "pool": "s0",
        "device": "a",
        "bindingConditions": ["Ready"],
        "bindingFailureConditions": ["Failed"],
    }
    stamp = datetime.fromtimestamp(since, UTC).isoformat()
    reported = [{"type": t, "status": "True", "reason": "R", "message": "m"} for t in conditions]
    status = {
        "allocation": {"devices": {"results": [result]}, "allocationTimestamp": stamp},
        "reservedFor": [{"resource": "pods", "name": "p0", "uid": "p0"}],
        "devices": [{"driver": "gpu.example", "pool": "s0", "device": "a", "conditions": reported}],
    }
    return make_claim(status=status)


ARGS = DynamicResourcesArgs(binding_timeout=Duration.of_seconds(600))


@pytest.mark.parametrize(
    ("claim", "seconds", "fits"),
    [
        pytest.param(binding_claim(), 600, True, id="still in time"),
        pytest.param(binding_claim(), 601, False, id="too late"),
        pytest.param(binding_claim("Ready"), 601, True, id="ready long ago"),
        pytest.param(binding_claim("Failed"), 0, False, id="failed"),
    ],
)
def test_filter_and_binding_conditions(claim, seconds, fits):
    """Devices that failed or took too long are given up for others."""
    cluster = Cluster(claims=[claim], args=ARGS)
    cluster.handle.clock.seconds = seconds

    assert fits == ("n0" in cluster.fits(claiming("c0")))


@pytest.mark.parametrize(
    ("claim", "text", "outcome", "seconds"),
    [
        pytest.param(binding_claim("Ready"), "", "success", 0, id="ready"),
        pytest.param(
            binding_claim("Failed"),
            'device binding failed: claim=default/c0, reason=R, message="m"',
            "failure",
            0,
            id="failed",
        ),
        pytest.param(binding_claim(), "device binding timeout", "timeout", 600, id="never"),
    ],
)
async def test_pre_bind_waits_for_devices(claim, text, outcome, seconds):
    """The pod is bound once drivers have prepared its devices; event and metrics tell what it waits for."""
    cluster, metrics = Cluster(claims=[claim], args=ARGS), SchedulerMetrics()
    cluster.handle.claim_metrics = metrics.claims
    cluster.handle.background = Passing(cluster.handle.clock)
    cluster.reserved(claiming("c0"), "n0")
    status = await cluster.plugin.pre_bind(cluster.state, claiming("c0"), "n0")

    assert text == status.message
    ((_, kind, reason, _, note),) = cluster.handle.recorder.events
    assert ("Normal", "BindingConditionsPending") == (kind, reason)
    assert "waiting for binding conditions for device on node n0" == note
    labels = {"profile": "default-scheduler", "driver": "gpu.example", "status": outcome}
    for name, value in (("allocations_total", 1), ("wait_duration_seconds_sum", seconds)):
        assert value == metrics.registry.get_sample_value(f"scheduler_dra_bindingconditions_{name}", labels)


async def test_a_claim_that_vanishes_meanwhile():
    """A claim that loses its allocation while its devices are awaited is an error, and counted as one."""
    cluster, metrics = Cluster(claims=[binding_claim()], args=ARGS), SchedulerMetrics()
    cluster.handle.claim_metrics = metrics.claims
    cluster.handle.background = Passing(cluster.handle.clock)
    cluster.reserved(claiming("c0"), "n0")
    cluster.handle.listers.resource_claims.put(make_claim("c0"))

    status = await cluster.plugin.pre_bind(cluster.state, claiming("c0"), "n0")

    assert "deallocated" in status.message
    labels = {"profile": "default-scheduler", "driver": "gpu.example", "status": "error"}
    name = "scheduler_dra_bindingconditions_allocations_total"
    assert 1 == metrics.registry.get_sample_value(name, labels)


class Passing:
    """Timers that fire at once, and move the clock as far as they were set."""

    def __init__(self, clock):
        self.clock = clock

    def outcome(self):
        return ReportedStatus()

    def call_later(self, seconds, call):
        self.clock.seconds += seconds
        call()


class ReportedStatus:
    def set(self, value):
        self.value = value

    def __await__(self):
        return self.value
        yield


def extended_pod(*counts, init=()):
    def container(name, count):
        requests = {"cpu": "1", "example.com/gpu": str(count)} if count else {"cpu": "1"}
        return Container(name, "app", Resources(requests=requests))

    return make_pod(
        "p0",
        uid="p0",
        containers=[container(f"c{i}", n) for i, n in enumerate(counts)],
        init_containers=tuple(container(f"i{i}", n) for i, n in enumerate(init)),
    )


GPUS = [make_class(extendedResourceName="example.com/gpu")]


async def test_extended_resources_become_a_claim():
    """A resource that a class backs is served by devices where no device plugin offers it."""
    nodes = ["n0", make_node("n1", allocatable={"cpu": "4", "example.com/gpu": "4"}), "n2"]
    cluster = Cluster(
        nodes=nodes, classes=GPUS, slices=[make_slice("s0", [device("a"), device("b")], node="n0")]
    )
    pod = extended_pod(2)
    assert cluster.plugin.cache_key(CycleState(), pod, table([])) is None
    assert {"n0": "", "n1": "", "n2": "cannot allocate all claims"} == cluster.reasons(pod)

    name = "container-0-request-1"
    assert [(name, "s0", "a"), (name, "s0", "b")] == cluster.reserved(pod, "n0")
    assert (await cluster.plugin.pre_bind(cluster.state, pod, "n0")).ok
    assert [
        ("create", "p0-extended-resources-"),
        ("reserve", "p0-extended-resources-x", True),
        ("publish", "p0-extended-resources-x", [("c0", "example.com/gpu", name)]),
    ] == cluster.writer.calls
    await cluster.plugin.unreserve(cluster.state, pod, "n0")
    assert ("delete", "p0-extended-resources-x") == cluster.writer.calls[-1]


async def test_regular_containers_are_reported_first():
    """An init container has the devices of the one that comes later, and then its own extra ones."""
    slices = [make_slice("s0", [device("a"), device("b")], node="n0")]
    cluster = Cluster(nodes=["n0"], classes=GPUS, slices=slices)
    pod = extended_pod(1, init=(2,))
    cluster.reserved(pod, "n0")
    await cluster.plugin.pre_bind(cluster.state, pod, "n0")

    assert [
        ("c0", "example.com/gpu", "container-1-request-1"),
        ("i0", "example.com/gpu", "container-1-request-1"),
        ("i0", "example.com/gpu", "container-0-request-1"),
    ] == cluster.writer.calls[-1][2]


CREATED = "scheduler_resourceclaim_creates_total", {}
CREATED_BY_ANY = (
    "dynamic_resource_allocation_resourceclaim_creates_total",
    {"admin_access": "false", "owner_api_group": "", "owner_api_kind": "Pod"},
)


@pytest.mark.parametrize(
    ("release", "name", "labels"),
    [((1, 36), *CREATED), ((1, 37), *CREATED_BY_ANY), ((1, 38), *CREATED_BY_ANY)],
)
@pytest.mark.parametrize("refused", [False, True])
async def test_created_claims_are_counted(release, name, labels, refused):
    """Each claim for extended resources that was to be created counts, as a success or a failure."""
    cluster = Cluster(classes=GPUS, slices=[make_slice("s0", [device("a")], node="n0")])
    metrics = SchedulerMetrics(shared_claim_metric=RULES[release].shared_claim_metric)
    cluster.handle.claim_metrics = metrics.claims
    cluster.writer.refuses_to_create = refused
    pod = extended_pod(1)
    cluster.reserved(pod, "n0")

    assert refused != (await cluster.plugin.pre_bind(cluster.state, pod, "n0")).ok
    result = "failure" if refused else "success"
    assert 1 == metrics.registry.get_sample_value(name, {"status": result} | labels)


async def test_extended_resources_of_a_device_plugin_need_no_claim():
    """Nothing is allocated where the node offers the resource itself."""
    nodes = [make_node("n0", allocatable={"cpu": "4", "example.com/gpu": "4"})]
    cluster = Cluster(nodes=nodes, classes=GPUS)
    pod = extended_pod(2)

    assert [] == cluster.reserved(pod, "n0")
    assert (await cluster.plugin.pre_bind(cluster.state, pod, "n0")).ok
    assert [] == cluster.writer.calls


@pytest.mark.parametrize(
    ("counts", "init", "requests"),
    [
        pytest.param(
            (1, 2), (), [("container-0-request-1", 1), ("container-1-request-1", 2)], id="each its own"
        ),
        pytest.param((2,), (2,), [("container-1-request-1", 2)], id="init before main"),
        pytest.param(
            (1,), (3, 2), [("container-0-request-1", 2), ("container-2-request-1", 1)], id="the largest extra"
        ),
    ],
)
def test_requests_of_containers(counts, init, requests):
    """Init containers use what later containers get, and only the largest of them gets more."""
    devices = [device(f"d{i}") for i in range(4)]
    cluster = Cluster(classes=GPUS, slices=[make_slice("s0", devices, node="n0")])
    cluster.reserved(extended_pod(*counts, init=init), "n0")
    (claim,) = cluster.listers.claim_tracker.all_in_flight()

    assert requests == [(r.name, r.exactly.count) for r in claim.spec.devices.requests]


def test_the_newest_class_backs_a_resource():
    """Of classes that name one resource the newest counts, the first by name among equals (PreFilter 2)."""
    names = ("b", "a", "c")
    classes = [make_class(name, extendedResourceName="example.com/gpu") for name in names]
    old = msgspec.structs.replace(classes[2].metadata, creation_timestamp=datetime(2020, 1, 1, tzinfo=UTC))
    classes[2] = msgspec.structs.replace(classes[2], metadata=old)
    behind = Cluster(classes=classes).plugin._names.behind

    assert "c" == behind("example.com/gpu").name
    assert "a" == Cluster(classes=classes[:2]).plugin._names.behind("example.com/gpu").name
    assert "b" == behind("deviceclass.resource.kubernetes.io/b").name
    assert behind("example.com/other") is None


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, make_claim(), "QUEUE", id="own claim added"),
        pytest.param(make_claim(), allocated("c0", ("s0", "a")), "QUEUE", id="own status changed"),
        pytest.param(make_claim(), make_claim(config=[{}]), "SKIP", id="own metadata or spec changed"),
        pytest.param(allocated("c9", ("s0", "a")), make_claim("c9"), "QUEUE", id="another deallocated"),
        pytest.param(make_claim("c9"), allocated("c9", ("s0", "a")), "SKIP", id="another changed"),
    ],
)
def test_claim_hints(old, new, hint):
    """Conformance vectors of 9.5."""
    hints = Cluster(claims=[make_claim()]).plugin._hints

    assert QueueingHint[hint] is hints.after_claim_change(claiming("c0"), old, new)
    assert QueueingHint.SKIP is hints.after_claim_change(claiming("c0", "missing"), old, new)


@pytest.mark.parametrize(
    ("old", "new", "key", "named"),
    [
        pytest.param(None, make_claim(owner="p0"), "default/p0", True, id="made for a pod"),
        pytest.param(None, make_claim("c9"), "", False, id="without owner"),
        pytest.param(make_claim(), allocated("c0", ("s0", "a")), "", True, id="allocated"),
    ],
)
def test_a_claim_concerns_its_own_pods(old, new, key, named):
    """The pod that it was made for, and those that name it: others are not asked."""
    concerned = concerned_by_change(old, new)

    assert (key, named) == (concerned.key, concerned.by_template(claiming("c0").template))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(allocated("c9", ("s0", "a")), make_claim("c9"), id="devices are free"),
        pytest.param(None, make_claim(owner_kind="PodGroup", owner="g"), id="a group's"),
    ],
)
def test_a_claim_that_may_help_any_pod(old, new):
    assert concerned_by_change(old, new) is None


@pytest.mark.parametrize(
    ("find", "old", "expected"),
    [
        pytest.param(concerned_by_deletion, make_claim(), False, id="a claim without devices"),
        pytest.param(concerned_by_deletion, allocated("c9", ("s0", "a")), None, id="a claim with devices"),
        pytest.param(concerned_by_pod, claiming("c0"), True, id="a pod that shares a claim"),
        pytest.param(concerned_by_pod, claiming("c9"), False, id="a pod with another claim"),
        pytest.param(concerned_by_pod, make_pod("p1"), False, id="a pod without claims"),
    ],
)
def test_whom_a_deletion_concerns(find, old, expected):
    """None where all pods are asked about, else whether a pod that names c0 is."""
    concerned = find(old, None)

    assert expected == (concerned and concerned.by_template(claiming("c0").template))


def test_hints_for_generated_claims():
    """A pod waits until all of its own claims were made."""
    hints = Cluster(claims=[make_claim(owner="p0")]).plugin._hints
    pod = from_template()
    ready = with_status(pod, {"name": "e0", "resourceClaimName": "c0"})

    assert QueueingHint.QUEUE is hints.after_claims_generated(pod, pod, ready)
    assert QueueingHint.SKIP is hints.after_claims_generated(pod, pod, pod)
    assert QueueingHint.SKIP is hints.after_claims_generated(PLAIN, pod, ready)


def test_a_search_ends_in_time():
    """A node that takes longer than filterTimeout fails the cycle (Filter 3)."""
    args = DynamicResourcesArgs(filter_timeout=Duration.of_seconds(1))
    devices = [device(f"d{i}") for i in range(40)]
    claims = [make_claim(requests=[request(count=30)])]
    cluster = Cluster(slices=[make_slice("s0", devices)], claims=claims, args=args)
    cluster.handle.clock = Hasty()
    cluster.plugin = DynamicResources(args, cluster.handle)

    assert "node n0: timed out trying to allocate devices" == cluster.reasons(claiming("c0"))["n0"]


class Hasty:
    """Two seconds pass between any two looks at this clock."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        self.seconds += 2.0
        return self.seconds
