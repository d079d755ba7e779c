"""Schedulers that explain pods behind a sandbox with RBAC, as an APIService has it, and a developer."""

import asyncio
import json
import ssl
from base64 import b64encode
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import aiohttp

from berth.aggregated_api import kinds
from berth.aggregated_api.leaders import ANNOTATION
from berth.aggregated_api.replicas import AUDIENCE
from berth.config import load
from berth.config.feature_gates import FeatureGates
from berth.operator.certificates import Authorities
from berth.sandbox import SandboxOptions, serve
from berth.sandbox.access.identity import service_account
from berth.sandbox.attributes import SandboxUser
from berth.sandbox.free_port import LOOPBACK, free_port
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions, Serving
from tests.suite import PATIENCE_SECONDS
from tests.unit.operator.rights import bound, documents, scheduler_roles
from tests.unit.scheduler_at_work import eventually, node

SERVICE = "berth-explain"
JANE = SandboxUser("jane", ("system:authenticated",))
OSCAR = SandboxUser("oscar", ("system:authenticated",))
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1}}
leaderElection:
  resourceNamespace: {leases}
  resourceName: {profile}
  leaseDuration: 60s
  renewDeadline: 50s
  retryPeriod: 100ms
profiles:
- schedulerName: {profile}
"""
GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
RBAC = "rbac.authorization.k8s.io"


def explanation(namespace, name):
    """The path of a pod's explanation."""
    return kinds.POD.path(namespace, name)


def pod(namespace, name, profile, cpu="400"):
    """A pod that fits on no node of four cores, unless it asks for less."""
    container = {"name": "m", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": profile, "containers": [container]},
    }


def gang(namespace, name, profile):
    """A PodGroup of two pods, one of which is there."""
    member = pod(namespace, f"{name}-0", profile, cpu="1")
    member["spec"]["schedulingGroup"] = {"podGroupName": name}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    return [group, member]


def api_service(authority):
    """The APIService, its Service without a selector, and the group's slice with these ports."""
    spec = {
        "group": "explain.berth.dev",
        "version": "v1alpha1",
        "service": {"namespace": "berth-system", "name": SERVICE, "port": 443},
        "caBundle": b64encode(authority.encode()).decode(),
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    head = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    port = {"name": "https", "port": 443, "targetPort": 443}
    return [
        {**head, "metadata": {"name": "v1alpha1.explain.berth.dev"}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": "berth-system"},
            "spec": {"ports": [port]},
        },
    ]


def slice_of(number, port):
    """A slice by which the Service reaches a scheduler of this machine."""
    labels = {"kubernetes.io/service-name": SERVICE}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{SERVICE}-{number}", "namespace": "berth-system", "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [LOOPBACK], "conditions": {"ready": True}}],
    }


def viewer(user, namespace):
    """The binding of the role `view` in a namespace."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "view", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": user.name}],
    }


def reached_pod():
    """The pod of the schedulers, by the address that they publish: it proves that address to others."""
    document = pod("berth-system", "schedulers", "none")
    return document | {"status": {"podIP": LOOPBACK, "phase": "Running"}}


def cluster_viewer(user):
    """The binding of the role that shows nodes, profiles and queues."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "cluster-view"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "berth-cluster-viewer"},
        "subjects": [{"kind": "User", "name": user.name}],
    }


@asynccontextmanager
async def explaining(tmp_path, profiles, *objects, leases="berth-system", **process_options):
    """A sandbox with a scheduler for each of the profiles, and an APIService in front of them all.

    Gives the sandbox, the schedulers' ports, and kubeconfigs: an administrator's, the developer Jane's, who
    may view namespace team-a, and the operator Oscar's, who may see nodes, profiles and queues. Two
    schedulers of the same profile are replicas. The APIService is available, and each profile has a leader,
    whose lease is in the namespace `leases`.
    Further keywords are the processes' own options.
    """
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(await serve(SandboxOptions(rbac=True)))
        account = service_account("berth-system", "berth-main")
        own = scheduler_roles(*sorted(set(profiles)))
        bindings = [bound(one["metadata"]["name"], account) for one in own]
        sandbox.load([*own, *documents("user_roles.yaml"), *bindings])
        sandbox.load([node("n1"), viewer(JANE, "team-a"), cluster_viewer(OSCAR), *objects])
        authorities = Authorities().renewed(datetime.now(UTC))
        signer = authorities.signer(datetime.now(UTC))
        files = tmp_path / "tls.crt", tmp_path / "tls.key"
        for file, pem in zip(
            files, signer.issue([f"{SERVICE}.berth-system.svc"], datetime.now(UTC)), strict=True
        ):
            file.write_bytes(pem)
        kubeconfigs = {
            "scheduler": sandbox.kubeconfig_for(account),
            "jane": sandbox.kubeconfig_for(JANE),
            "oscar": sandbox.kubeconfig_for(OSCAR),
        }
        for name, text in {**kubeconfigs, "admin": sandbox.kubeconfig()}.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "replica-token").write_text(sandbox.access.issue(account, [AUDIENCE]))
        sandbox.load([reached_pod()])
        ports = []
        for number, profile in enumerate(profiles):
            ports.append(free_port())
            text = CONFIGURATION.format(kubeconfig=tmp_path / "scheduler", profile=profile, leases=leases)
            serving = Serving(LOOPBACK, ports[-1], *map(str, files))
            options = ProcessOptions(
                load(text, gates=GATES),
                serving=serving,
                seed=1,
                replica_token_file=str(tmp_path / "replica-token"),
                **process_options,
            )
            await stack.enter_async_context(_scheduling(options))
            sandbox.load([slice_of(number, ports[-1])])
        sandbox.load(api_service(authorities.bundle()))
        cluster = SimpleNamespace(
            sandbox=sandbox, ports=ports, folder=tmp_path, authority=authorities.bundle(), signer=signer
        )
        await eventually(lambda: available(cluster) and set(profiles) <= published_profiles(cluster))
        yield cluster


@asynccontextmanager
async def _scheduling(options):
    ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
    process = asyncio.create_task(run(options, stop, on_ready=ready.set_result))
    try:
        await eventually(lambda: process.done() or ready.done())
        assert ready.done(), process.result()
        yield
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process
    finally:
        process.cancel()
        await asyncio.gather(process, return_exceptions=True)


def available(cluster):
    """Whether the APIService is."""
    entry = cluster.sandbox.store.collection("apiservices.apiregistration.k8s.io").get(
        "v1alpha1.explain.berth.dev"
    )
    conditions = (entry.decode().get("status") or {}).get("conditions") or []
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)


def published_profiles(cluster):
    """Names of the profiles whose leaders say in their leases that they lead."""
    entries = cluster.sandbox.store.collection("leases.coordination.k8s.io").entries()
    annotations = [entry.decode()["metadata"].get("annotations", {}) for entry in entries]
    said = [json.loads(found[ANNOTATION]) for found in annotations if ANNOTATION in found]
    return {profile for one in said for profile in one["profiles"]}


async def ask(url, path, token, **headers):
    """Ask any of the servers; gives code and document."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}", **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.get(url + path, headers=headers, ssl=context) as answer,
    ):
        return answer.status, await answer.json(content_type=None)
