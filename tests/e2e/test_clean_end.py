"""How a leader ends: at once, with its lease free and plain words, whatever is under way or away."""

import pytest

from tests.e2e.failover_storm import Replicas
from tests.e2e.fault_rules import Fault
from tests.e2e.faults import BINDING, LEASES, bound_names, faulty_cluster, node, pod

pytestmark = pytest.mark.e2e

ROOM = 100
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "later"},
    "provisioner": "example.com/never",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {
        "storageClassName": "later",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


async def lease_writes(cluster, since):
    """The writes to the lease since that request."""
    log = await cluster.proxy.ask("log", since=since)
    return [entry for entry in log if LEASES in entry["path"] and entry["method"] != "GET"]


async def one_leads(cluster, **lease):
    """A scheduler that leads and knows of a node."""
    await cluster.create(node("n", pods=ROOM))
    replicas = Replicas(cluster, 1, **lease)
    await replicas.fill_up()
    return await cluster.until(replicas.leader, "it leads")


async def holder(cluster):
    """Whom the lease names."""
    lease = await cluster.get(f"{LEASES}/kube-scheduler")
    return lease["spec"].get("holderIdentity")


async def test_a_volume_that_is_waited_for_holds_nothing_up(tmp_path):
    """What has sent no binding is given up; the first write after the signal gives the lease back."""
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        name = await one_leads(cluster)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await cluster.create(CLASS, CLAIM, pod("p", volumes=[volume]))

        async def provisioning():
            claim = await cluster.get(f"{CLAIMS}/data")
            return "volume.kubernetes.io/selected-node" in claim["metadata"].get("annotations", {})

        await cluster.until(provisioning, "the volume is waited for")
        since = len(await cluster.proxy.ask("log"))

        assert 0 == await cluster.end(name)
        assert not await holder(cluster)
        # At most one renewal can have been on its way; the next is due after half a second.
        assert len(await lease_writes(cluster, since)) <= 2
        assert [] == bound_names(cluster.pods())


async def test_a_binding_that_was_sent_is_answered_before_the_lease_is_free(tmp_path):
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        name = await one_leads(cluster)
        late = {"fault": Fault.LATE, "path": BINDING, "seconds": 0.5}
        await cluster.proxy.rules(late)
        await cluster.create(pod("p"))
        await cluster.until(lambda: cluster.proxy.bindings(name), "its binding is sent")

        assert 0 == await cluster.end(name)
        assert not await holder(cluster)
        assert ["p"] == bound_names([await cluster.get("/api/v1/namespaces/default/pods/p")])


@pytest.mark.parametrize(
    ("duration", "runs_out"),
    [pytest.param("8s", True, id="may land for 5 s"), pytest.param("4s", False, id="may land for 1 s")],
)
async def test_a_lease_with_a_binding_that_is_never_answered(tmp_path, duration, runs_out):
    """It runs out rather than let a successor decide before the binding lands, unless that is over soon."""
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        name = await one_leads(cluster, duration=duration)
        await cluster.proxy.rules({"fault": Fault.HOLD, "path": BINDING})
        await cluster.create(pod("p"))
        await cluster.until(lambda: cluster.proxy.bindings(name), "its binding is sent")

        assert 0 == await cluster.end(name)
        assert runs_out == bool(await holder(cluster))
        assert runs_out == ("lease not released, it will run out" in cluster.log(name).read_text())


@pytest.mark.parametrize("ends", ["away", "back"])
async def test_an_api_server_that_is_away_ends_in_no_traceback(tmp_path, ends):
    """Lost while leading, then ended: while it is away, or behind the fence after it came back."""
    async with faulty_cluster(tmp_path, room=ROOM) as cluster:
        name = await one_leads(cluster)
        away = {"fault": Fault.HANG_BEFORE, "via": name, "path": "/"}
        await cluster.proxy.rules(away)
        await cluster.proxy.ask("cut", via=name)
        await cluster.until(lambda: "stepped down" in cluster.log(name).read_text(), "it steps down")
        if ends == "back":
            # Its lists are not answered, so that it leads and cannot prove its view.
            await cluster.proxy.rules({**away, "path": r"/api/v1/(nodes|pods)"})
            since = len(await cluster.proxy.ask("log"))
            await cluster.until(lambda: lease_writes(cluster, since), "it leads again")

        assert 0 == await cluster.end(name)
        said = cluster.log(name).read_text()
        assert "Traceback" not in said
        assert "Requested to terminate, exiting" in said
