"""Two schedulers and one lease: a leader that stood still writes nothing, and the other one goes on.

docs/decisions/0006-fresh-lease.md
"""

import itertools
import json
import signal

import pytest

from berth.client.api import MERGE_PATCH
from tests.e2e.fault_rules import Fault
from tests.e2e.faults import BINDING, LEASES, bound_names, decided, faulty_cluster, is_binding, node, pod

pytestmark = pytest.mark.e2e

ROOM = 200
LEASE = {"duration": "15s", "deadline": "10s", "period": "1s"}


def takes_lease(entry):
    """Whether a request wrote the lease."""
    return entry["method"] != "GET" and LEASES in entry["path"] and 0 < entry["status"] < 400


class Election:
    """Which of the two schedulers leads, as the proxy sees it, and how far the work is."""

    def __init__(self, cluster):
        self.cluster = cluster

    async def leader(self):
        """Who wrote the lease last, and held it then."""
        log = await self.cluster.proxy.ask("log")
        wrote = [e["via"] for e in log if takes_lease(e)]
        return wrote[-1] if wrote else ""

    async def sent(self, name):
        """How many bindings it has sent."""
        return len(await self.cluster.proxy.bindings(name))

    async def sent_without_lease(self, name, since):
        """The bindings since that request which it sent before it had taken the lease again."""
        log = await self.cluster.proxy.ask("log", since=since)
        mine = itertools.takewhile(lambda e: not takes_lease(e), (e for e in log if e["via"] == name))
        return [e["path"] for e in mine if is_binding(e)]

    async def holder(self):
        """Whom the lease names."""
        lease = await self.cluster.get(f"{LEASES}/kube-scheduler")
        return lease["spec"].get("holderIdentity")

    async def bound(self, count):
        """Wait until so many pods are bound."""
        await self.cluster.until(lambda: len(self.cluster.witness.bound) >= count, f"{count} pods are bound")


async def assert_endpoints(cluster, leader, standby):
    """Both are healthy and answer as kube-scheduler does; pods' resources are shown by the leader alone."""
    for name in (leader, standby):
        for path in ("/healthz", "/livez", "/readyz", "/healthz/leaderElection", "/readyz/shutdown"):
            assert "ok" == await cluster.show(name, path)
        verbose = await cluster.show(name, "/readyz?verbose")
        assert "[+]sched-handler-sync ok" in verbose
        shown = json.loads(await cluster.show(name, "/configz"))["componentconfig"]
        assert ("KubeSchedulerConfiguration", LEASE["duration"]) == (
            shown["kind"],
            shown["leaderElection"]["leaseDuration"],
        )
        assert 'kubernetes_healthcheck{name="leaderElection",type="healthz"} 1' in await cluster.show(
            name, "/metrics/slis"
        )
        leads = f'leader_election_master_status{{name="kube-scheduler"}} {float(name == leader)}'
        assert leads in await cluster.show(name, "/metrics")
        assert "leadership" in await cluster.show(name, "/debug/pprof/goroutine")
        assert "secure-port=" in await cluster.show(name, "/flagz")
        assert "Emulation version=1.36" in await cluster.show(name, "/statusz")
    requested = 'kube_pod_resource_request{namespace="default",node="n'
    assert requested in await cluster.show(leader, "/metrics/resources")
    assert "" == await cluster.show(standby, "/metrics/resources")


async def test_a_leader_that_was_frozen(tmp_path):
    """It sends not one binding when it wakes, steps down without exiting, and leads again later."""
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        election = Election(cluster)
        await cluster.create(*(node(f"n{i}", pods=ROOM) for i in range(4)))
        for name in ("first", "second"):
            await cluster.start_scheduler(name, elect=True, **LEASE)
            await cluster.ready(name)
        frozen = await cluster.until(election.leader, "one of them leads")
        (successor,) = {"first", "second"} - {frozen}
        await cluster.create(pod("first-of-all"))
        await election.bound(1)
        await assert_endpoints(cluster, frozen, successor)
        # The freeze finds bindings on their way, and some that wait to be sent.
        held = {"fault": Fault.HOLD, "via": frozen, "method": "POST", "path": BINDING, "skip": 20}
        await cluster.proxy.rules(held)
        await cluster.create(*(pod(f"a{i}") for i in range(200)))
        await election.bound(21)
        await cluster.until(lambda: cluster.proxy.ask("held"), "bindings are on their way")
        cluster.signal(frozen, signal.SIGSTOP)
        await cluster.proxy.rules()
        await cluster.proxy.ask("let_go", forward=True)
        before = await election.sent(successor)
        await cluster.create(*(pod(f"b{i}") for i in range(100)))

        async def taken_over():
            return await election.sent(successor) > before

        await cluster.until(taken_over, "the successor binds")
        sent = await election.sent(frozen)
        assert sent < 200, "it was frozen after its work was done"
        frozen_at = len(await cluster.proxy.ask("log"))
        cluster.signal(frozen, signal.SIGCONT)
        await election.bound(301)
        await cluster.until(lambda: "stepped down" in cluster.log(frozen).read_text(), "it steps down")
        await cluster.create(*(pod(f"c{i}") for i in range(20)))
        await election.bound(321)
        assert [] == await election.sent_without_lease(frozen, frozen_at)

        await cluster.create(*(pod(f"d{i}") for i in range(100)))
        led = await election.holder()
        assert 0 == await cluster.end(successor)
        assert led != await election.holder()
        await cluster.create(*(pod(f"e{i}") for i in range(20)))
        await election.bound(441)
        assert await election.sent(frozen) > sent
        assert [] == cluster.witness.wrongs
        assert 441 == len(cluster.witness.bound)
        assert not json.loads(await cluster.show(frozen, "/debug/cache"))["differences"]


async def test_a_standby_whose_watches_are_silent(tmp_path):
    """It takes the lease over with a view from before its predecessor's last binding, and proves it first."""
    held = {"holderIdentity": "predecessor", "leaseDurationSeconds": 3600}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {**held, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }
    async with faulty_cluster(tmp_path, room=1) as cluster:
        await cluster.create(node("n0", pods=1), pod("a"), pod("b"))
        await cluster.api.call("POST", LEASES, json.dumps(lease).encode())
        await cluster.proxy.rules({"fault": Fault.SLOW_WATCH, "path": ".*watch=true", "seconds": 3600})
        await cluster.start_scheduler("standby", elect=True)
        await cluster.ready("standby")
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n0"}}
        path = "/api/v1/namespaces/default/pods/a/binding"
        await cluster.api.call("POST", path, json.dumps(binding).encode())
        freed = json.dumps({"spec": {"holderIdentity": ""}}).encode()
        path = f"{LEASES}/kube-scheduler"
        await cluster.api.call("PATCH", path, freed, content_type=MERGE_PATCH)
        await cluster.until(lambda: all(map(decided, cluster.pods())), "the other pod is decided on")

        assert [] == cluster.witness.wrongs
        assert ["a"] == bound_names(cluster.pods())
        assert [] == await cluster.proxy.bindings("standby")
        assert "berth_fence_seconds_count 1.0" in await cluster.show("standby", "/metrics")
