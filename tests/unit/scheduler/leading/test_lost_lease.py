"""A lease that can't be written any more: the process goes on campaigning, and says why, in few lines."""

import asyncio
import re
import ssl
import urllib.request

from berth.client.resources import LEASES
from tests.failures.reporting import reports
from tests.unit.scheduler import test_plugins_at_work as plugins_at_work
from tests.unit.scheduler.test_plugins_at_work import at_work
from tests.unit.scheduler_at_work import eventually

ELECTION = "{leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 300ms}"
OWN = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "berth-main-0", "namespace": "kube-system"},
    "spec": {"nodeName": "red", "containers": [{"name": "scheduler", "image": "berth"}]},
}


LEADING = "berth.dev/Leading"


def leading(cluster):
    """The condition on the scheduler's pod: status, reason, message."""
    documents = [entry.decode() for entry in cluster.sandbox.store.collection("pods").entries()]
    (own,) = [one for one in documents if one["metadata"]["name"] == "berth-main-0"]
    found = [one for one in (own.get("status") or {}).get("conditions") or () if one["type"] == LEADING]
    return next(((one["status"], one["reason"], one["message"]) for one in found), ("", "", ""))


def metrics(cluster):
    """What the process shows at /metrics."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(f"{cluster.server}/metrics", context=context) as answer:
        return answer.read().decode()


@reports(
    "lease-lost",
    condition="`berth.dev/Leading` of the pod, with the cause",
    event="`LeaseNotRenewed` of the Lease, with the cause; `LeaderElection`: who stopped leading",
    metric="`berth_lease_failures`, `leader_election_master_status`",
    log="`lease not acquired or renewed`, with the number of tries, one line in two minutes",
)
async def test_a_lease_that_can_not_be_written(monkeypatch, caplog):
    """Condition, event and metric say why nothing is scheduled, and that it is over once it is."""
    monkeypatch.setenv("POD_NAME", "berth-main-0")
    monkeypatch.setenv("POD_NAMESPACE", "kube-system")
    text = plugins_at_work.CONFIGURATION.replace("{{leaderElect: false}}", f"{{{ELECTION}}}")
    monkeypatch.setattr(plugins_at_work, "CONFIGURATION", text)
    async with at_work(listed=False) as cluster:
        cluster.sandbox.load([OWN])
        await eventually(lambda: leading(cluster)[0] == "True")
        assert 'berth_lease_failures{name="kube-scheduler"} 0.0' in await asyncio.to_thread(metrics, cluster)

        catalogue = cluster.sandbox.api.catalogue
        leases = catalogue.get(LEASES.group, LEASES.version, LEASES.plural)
        catalogue.remove(leases)
        await eventually(lambda: leading(cluster)[:2] == ("False", "LeaseNotAcquired"))
        assert "lease kube-scheduler: " in leading(cluster)[2]
        await eventually(lambda: cluster.notes("LeaseNotRenewed"))
        assert cluster.notes("LeaseNotRenewed")[0].startswith("the lease was not acquired or renewed: ")
        shown = await asyncio.to_thread(metrics, cluster)
        (failures,) = re.findall(r'berth_lease_failures\{name="kube-scheduler"\} (\S+)', shown)
        assert float(failures) > 0
        assert 'leader_election_master_status{name="kube-scheduler"} 0.0' in shown
        await eventually(lambda: any("stopped leading" in each for each in cluster.notes("LeaderElection")))

        catalogue.add(leases)
        await eventually(lambda: leading(cluster) == ("True", "Leading", ""))
    assert any("lease not acquired or renewed tries=1 err=" in line for line in caplog.messages)
