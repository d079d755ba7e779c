"""An operator in this process, at work on a sandbox with RBAC and controllers, under its own rights."""

import asyncio
import json
from contextlib import asynccontextmanager

from berth.client import Api, load_endpoint
from berth.client.errors import ConflictError, NotFoundError
from berth.client.leases import LeaseSettings
from berth.config.releases.release import DEFAULT
from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.operator.process import OperatorSettings, run
from berth.operator.rendering import SchedulerDefaults
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import transport_to
from tests.unit.operator.rights import documents, guarded, running

SYSTEM = "berth-system"
"""On a machine that has other work, an operator may have a twentieth of a core."""
SCHEDULERS = f"/apis/berth.dev/v1alpha1/namespaces/{SYSTEM}/schedulers"
PLUGINS = f"/apis/berth.dev/v1alpha1/namespaces/{SYSTEM}/schedulerplugins"


def of_prometheus(plural, kind):
    """The definition of a kind that the Prometheus operator brings."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


MONITOR, RULES = (
    of_prometheus("servicemonitors", "ServiceMonitor"),
    of_prometheus("prometheusrules", "PrometheusRule"),
)


class AtWork:
    """The sandbox, what the operator may and did, an administrator's client, and the running operator."""

    def __init__(self, sandbox, ledger, api, process):
        self.sandbox, self.ledger, self.api, self.process = sandbox, ledger, api, process

    def objects(self, collection):
        """Give the stored objects of a collection by name."""
        found = (entry.decode() for entry in self.sandbox.store.collection(collection).entries())
        return {one["metadata"]["name"]: one for one in found}

    def condition(self, kind, name="main"):
        """Give a condition's (status, reason)."""
        status = self.objects("schedulers.berth.dev").get(name, {}).get("status", {})
        found = next((one for one in status.get("conditions", ()) if one["type"] == kind), {})
        return found.get("status"), found.get("reason")

    async def send(self, method, path, body=None):
        """Do something as the administrator."""
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return await self.api.call(method, path, json.dumps(body or {}).encode(), content_type=media)

    async def reach(self, claim):
        """Put pods on a node until the claim holds."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not claim():
                await self.place()
                await asyncio.sleep(0.01)

    async def place(self):
        """Put every pod that waits on a node."""
        for name, pod in self.objects("pods").items():
            if not pod["spec"].get("nodeName"):
                await self._bind(pod["metadata"]["namespace"], name)

    async def _bind(self, namespace, name):
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        try:
            await self.send("POST", path, {"metadata": {"name": name}, "target": {"name": "n1"}})
        except (ConflictError, NotFoundError):  # placed already, or its controller has taken it away
            return


@asynccontextmanager
async def installed(tmp_path, *, more=(), grants=(), release=DEFAULT):
    """A cluster with the operator's rights and kinds, and no operator yet."""
    files = (
        "namespace.yaml",
        "priority_class.yaml",
        "operator_rights.yaml",
        "scheduler_rights.yaml",
        "descheduler_rights.yaml",
        "user_roles.yaml",
    )
    options = {"controllers": True, "pod_grace_seconds": 0.02, "release": release}
    async with guarded(tmp_path, SYSTEM, "berth-operator", **options) as (sandbox, ledger, _):
        definitions = [scheduler_definition(), plugin_definition(), *more]
        rights = [one | namespaced(one) for one in documents(*files)]
        sandbox.load([*rights, *grants, *definitions])
        admin = load_endpoint(kubeconfig=str(tmp_path / "kubeconfig"), environ={})
        async with transport_to(admin) as transport:
            yield AtWork(sandbox, ledger, Api(transport), None)


@asynccontextmanager
async def operator(tmp_path, work, *, namespaces=(SYSTEM,), **choices):
    """An operator that leads until the block ends."""
    stop, ready = asyncio.Event(), asyncio.Event()
    lease = LeaseSettings(SYSTEM, "berth-operator", 10.0, 8.0, 0.2)
    settings = OperatorSettings(
        SchedulerDefaults("berth/scheduler:test", **choices),
        str(tmp_path / "account"),
        lease,
        namespaces=namespaces,
        on_ready=ready.set,
    )
    async with running(run(settings, stop), stop) as process:
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([process, waiting], timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        assert ready.is_set(), process.result() if process.done() else work.ledger.denied
        yield process


@asynccontextmanager
async def operating(tmp_path, *, more=(), namespaces=(SYSTEM,), grants=(), release=DEFAULT, **choices):
    """An operator that leads, with the rights that it is installed with, in its own namespace or in these.

    Choices are fields of its Settings.
    """
    async with (
        installed(tmp_path, more=more, grants=grants, release=release) as work,
        operator(tmp_path, work, namespaces=namespaces, **choices) as work.process,
    ):
        yield work


def namespaced(document):
    """Give the metadata of a document in the operator's namespace, as kustomize would write it."""
    if document["kind"] in ("Role", "RoleBinding"):
        document["metadata"]["namespace"] = SYSTEM
        for subject in document.get("subjects", ()):
            subject["namespace"] = SYSTEM
    return {}
