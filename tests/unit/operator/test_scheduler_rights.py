"""The rights that a scheduler is given: enough for all that it does, and not one that it has no use for."""

import asyncio

import pytest
import yaml

from berth.aggregated_api.authentication_config import AuthenticationConfig
from berth.aggregated_api.kinds import KINDS
from berth.aggregated_api.leaders import leaders
from berth.aggregated_api.request_info import resource_of
from berth.aggregated_api.users import User
from berth.client import Api, load_endpoint
from berth.client.resources import PODS
from berth.config import load, parse_feature_gates
from berth.config.releases.release import effective
from berth.live_page.paths import STATE
from berth.operator.rendering import SchedulerDefaults
from berth.operator.rendering.rights import cluster_roles, lease_rules
from berth.sandbox.access.identity import service_account
from berth.sandbox.errors import ApiError
from berth.sandbox.request import json_response
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions
from berth.serving.access import AccessReview
from berth.serving.delegated_access import DelegatedAccess
from tests.unit.client.conftest import transport_to
from tests.unit.operator.rights import BASE, bound, granted, guarded, running, scheduler_roles
from tests.unit.scheduler import test_devices_end_to_end as devices
from tests.unit.scheduler import test_volumes_end_to_end as volumes
from tests.unit.scheduler_at_work import eventually, node

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1}}
leaderElection:
  resourceNamespace: default
  leaseDuration: 3s
  renewDeadline: 2s
  retryPeriod: 200ms
podInitialBackoffSeconds: 1
"""
WITHOUT_DEVICES = """
profiles:
- plugins: {multiPoint: {disabled: [{name: DynamicResources}]}}
"""
# Only watched and written with the gates GenericWorkload, DRADeviceTaintRules and CompositePodGroup.
POD_GROUPS, TAINT_RULES = "berth-scheduler-pod-groups", "berth-scheduler-device-taint-rules"
TREES = "berth-scheduler-composite-pod-groups"


def pod(name, cpu="100m", priority=None, **spec):
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "m", "image": "app:1", "resources": resources}
    more = {"priorityClassName": priority} if priority else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **more, **spec},
    }


class Answers:
    """Answers of the API that go wrong: the first binding of a pod, by its name."""

    def __init__(self, sandbox, **codes):
        self._codes, self._handle = codes, sandbox.api.handle
        sandbox.api.handle = self.handle

    def handle(self, request):
        name = request.path.split("/")[-2] if request.path.endswith("/binding") else ""
        code = self._codes.pop(name, 0)
        if code:
            error = ApiError(code, "InternalError" if code == 500 else "Invalid", "not this time")
            return json_response(error.status(), code)
        return self._handle(request)


def cluster_objects():
    nodes = [node(f"n{i}", **{"kubernetes.io/hostname": f"n{i}"}) for i in range(2)]
    classes = [
        volumes.storage_class("local", "kubernetes.io/no-provisioner"),
        volumes.storage_class("made", "csi.example.com"),
        devices.device_class(extendedResourceName="example.com/gpu"),
    ]
    # Claims with opaque parameters are written as a whole, others patched.
    configured = devices.claim("configured", "b")
    configured["spec"]["devices"]["config"] = [
        {
            "opaque": {
                "driver": devices.DRIVER,
                "parameters": {"apiVersion": "gpu.example.com/v1", "kind": "Gpu"},
            }
        }
    ]
    claims = [
        volumes.claim("disk", "local"),
        volumes.claim("later", "made"),
        devices.claim("first", "a"),
        configured,
    ]
    supply = [
        volumes.volume("free", "5Gi", "n0"),
        devices.slice_of("n0", "a", "b"),
        devices.slice_of("n1", "b"),
    ]
    return [*nodes, *classes, *claims, *supply]


def bound_pods(sandbox):
    entries = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    return {one["metadata"]["name"] for one in entries if one["spec"].get("nodeName")}


async def test_enough_and_none_to_spare(tmp_path):
    """In a life with volumes, devices, preemption and mishaps nothing is denied, and every right is used."""
    gated = {POD_GROUPS, TAINT_RULES, TREES}
    roles = [one for one in scheduler_roles("kube-scheduler") if one["metadata"]["name"] not in gated]
    async with guarded(tmp_path, "default", "main") as (sandbox, ledger, kubeconfig):
        sandbox.load(
            [*roles, *(bound(one["metadata"]["name"], ledger.user) for one in roles), *cluster_objects()]
        )
        Answers(sandbox, ambiguous=500, extended=422)
        stop = asyncio.Event()
        settings = ProcessOptions(load(CONFIGURATION.format(kubeconfig=kubeconfig)), seed=1)
        admin = tmp_path / "kubeconfig"
        async with running(run(settings, stop), stop), volumes.controlled(admin, sandbox):
            sandbox.load(
                [
                    volumes.pod("static", "disk"),
                    volumes.pod("dynamic", "later"),
                    devices.pod("a", "first"),
                    devices.pod("b", "configured"),
                ]
            )
            sandbox.load([pod("ambiguous"), devices.pod("extended", **{"example.com/gpu": "1"})])
            expected = {"static", "dynamic", "a", "b", "ambiguous", "extended"}
            await eventually(lambda: expected <= bound_pods(sandbox))
            await fails(sandbox, admin, ledger)
            await preempts(sandbox)
            await is_asked_for_metrics(kubeconfig, sandbox)
            await is_asked_for_an_explanation(kubeconfig, ledger.user)
            await eventually(lambda: not ledger.spare(roles) or ledger.denied)

    assert [] == ledger.denied
    assert set() == ledger.spare(roles)


async def fails(sandbox, admin, ledger):
    """A pod that does not fit gets that message, again and again, as other pods go and that does not help."""
    sandbox.load([pod("never", cpu="400")])
    await eventually(lambda: len(events(sandbox, "never")) == 1)
    async with transport_to(load_endpoint(kubeconfig=str(admin), environ={})) as transport:
        # The first failure wrote the pod's status, so the second is one of another version of the pod.
        await Api(transport).delete(PODS, "default", "ambiguous")
        await eventually(lambda: len(events(sandbox, "never")) == 2)
        await Api(transport).delete(PODS, "default", "static")
        await eventually(lambda: any((one.verb, one.resource) == ("patch", "events") for one in ledger.used))
        await Api(transport).delete(PODS, "default", "never")


def events(sandbox, name):
    return [entry for entry in sandbox.store.collection("events").entries() if f"/{name}." in entry.key]


async def preempts(sandbox):
    """A pod of high priority takes the place of one of low priority."""
    sandbox.load([pod(f"low-{i}", cpu="2500m") for i in range(2)])
    await eventually(lambda: {"low-0", "low-1"} <= bound_pods(sandbox))
    sandbox.load([pod("high", cpu="2500m", priority="system-cluster-critical")])
    await eventually(lambda: "high" in bound_pods(sandbox))


async def is_asked_for_metrics(kubeconfig, sandbox):
    """Who may read metrics is asked of the API server."""
    async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
        stranger = service_account("default", "stranger")
        token = sandbox.access.issue(stranger)
        access = await DelegatedAccess(Api(transport))(AccessReview(token, "get", "/metrics"))
    assert (stranger.name, False) == access


async def is_asked_for_an_explanation(kubeconfig, user):
    """The API server proves to be one, the leader is looked up, and asked as this scheduler.

    So is its live page, which a standby shows.
    """
    async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
        api = Api(transport)
        config = AuthenticationConfig(api)
        await config.read()
        (leader,) = await leaders(api, "default")
        review = DelegatedAccess(api)
        paths = [kind.path("default" if kind.namespaced else "", "never") for kind in KINDS]
        paths.append(STATE)
        access = {
            await review(AccessReview("", "get", path, User(user.name), resource_of("GET", path)))
            for path in paths
        }
    assert config.trust.pem
    assert ("default-scheduler",) == leader.published.profiles
    assert {(user.name, True)} == access


def gang(name, size):
    """A group that needs all of its pods, and the pods."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }
    return [group, *(pod(f"{name}-{i}", schedulingGroup={"podGroupName": name}) for i in range(size))]


async def test_pod_groups(tmp_path):
    """With groups of pods the rights of their role are needed as well, all of them."""
    roles = scheduler_roles("kube-scheduler")
    (grouped,) = [one for one in roles if one["metadata"]["name"] == POD_GROUPS]
    async with guarded(tmp_path, "default", "main") as (sandbox, ledger, kubeconfig):
        sandbox.load([*roles, *(bound(one["metadata"]["name"], ledger.user) for one in roles), node("n0")])
        gates = parse_feature_gates(["GenericWorkload=true,GangScheduling=true"])
        loaded = load(CONFIGURATION.format(kubeconfig=kubeconfig), gates=gates)
        assert POD_GROUPS in cluster_roles(loaded, [], SchedulerDefaults("x"))
        stop = asyncio.Event()
        async with running(run(ProcessOptions(loaded, seed=1), stop), stop):
            sandbox.load(gang("trio", 3))
            await eventually(lambda: {"trio-0", "trio-1", "trio-2"} <= bound_pods(sandbox))
            await eventually(lambda: not ledger.spare([grouped]) or ledger.denied)

    assert [] == ledger.denied
    assert set() == ledger.spare([grouped])


async def test_device_taint_rules(tmp_path):
    """With rules that taint devices their role is needed as well; without DynamicResources it is not."""
    roles = scheduler_roles("kube-scheduler")
    (ruled,) = [one for one in roles if one["metadata"]["name"] == TAINT_RULES]
    gates = parse_feature_gates(["DRADeviceTaintRules=true"])
    async with guarded(tmp_path, "default", "main") as (sandbox, ledger, kubeconfig):
        sandbox.load([*roles, *(bound(one["metadata"]["name"], ledger.user) for one in roles)])
        text = CONFIGURATION.format(kubeconfig=kubeconfig)
        loaded, without = load(text, gates=gates), load(text + WITHOUT_DEVICES, gates=gates)
        assert TAINT_RULES in cluster_roles(loaded, [], SchedulerDefaults("x"))
        assert TAINT_RULES not in cluster_roles(without, [], SchedulerDefaults("x"))
        stop = asyncio.Event()
        async with running(run(ProcessOptions(loaded, seed=1), stop), stop):
            await eventually(lambda: not ledger.spare([ruled]) or ledger.denied)

    assert [] == ledger.denied
    assert set() == ledger.spare([ruled])


@pytest.mark.parametrize(("release", "needed"), [((1, 36), False), ((1, 37), True), ((1, 38), True)])
def test_device_taint_rules_by_default(release, needed):
    """From 1.37 on their gate is on without any setting, so that their role is needed."""
    loaded = load(CONFIGURATION.format(kubeconfig="k"), gates=parse_feature_gates([], effective(release)))

    assert needed == (TAINT_RULES in cluster_roles(loaded, [], SchedulerDefaults("x", release=release)))


def test_the_lease_of_kube_scheduler():
    """A scheduler that shares kube-scheduler's lease may do with it what it may with one of its own."""
    file = BASE.parent / "components/lease-of-kube-scheduler/rights.yaml"
    shared, *_ = yaml.safe_load_all(file.read_text())

    assert granted([{"rules": lease_rules("kube-scheduler")}]) == granted([shared])


@pytest.mark.parametrize("on", [True, False])
def test_trees_of_groups(on):
    """Their role is needed with their gate alone."""
    needs = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
    gates = parse_feature_gates([needs, f"CompositePodGroup={str(on).lower()}"], effective((1, 37)))
    loaded = load(CONFIGURATION.format(kubeconfig="k"), gates=gates)

    assert on == (TREES in cluster_roles(loaded, [], SchedulerDefaults("x", release=(1, 37))))
