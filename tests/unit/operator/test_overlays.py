"""What kustomize makes of the overlays: built, valid by Kubernetes' schemas and ours, and to be patched."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.operator.explain_api import PORT
from berth.operator.rendering import SchedulerDefaults
from berth.operator.rendering.names import SELECTED
from tests.release.version import version
from tests.unit.operator import kit

KUSTOMIZE = Path(__file__).parents[3] / "kustomize"
KUBECTL = Path(sys.executable).with_name("kubectl")
OVERLAYS = sorted(path.name for path in (KUSTOMIZE / "overlays").iterdir())
PLUGINS = sorted(path.name for path in (KUSTOMIZE / "components/plugins").iterdir())
OURS = {"Scheduler", "SchedulerPlugin"}
GROUPS = (
    "affinity",
    "composite-pod-groups",
    "descheduling",
    "device-taint-rules",
    "dynamic-resources",
    "pod-groups",
    "preemption",
    "spreading",
    "volumes",
)


@cache
def built(folder):
    """Give the objects that a kustomization makes."""
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def overlay(name):
    return built(str(KUSTOMIZE / "overlays" / name))


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


@pytest.mark.parametrize("name", OVERLAYS)
def test_valid(name):
    """Every object of every overlay has the fields that its kind has, and no others."""
    api = kit.serving()
    for one in overlay(name):
        if one["kind"] in OURS:
            plural = f"{one['kind'].lower()}s"
            body = {**one, "metadata": {"name": one["metadata"]["name"]}}
            status, answer = api.post(
                f"/apis/berth.dev/v1alpha1/namespaces/default/{plural}", body, fieldValidation="Strict"
            )
            assert 201 == status, answer
        elif one["kind"] not in {"ServiceMonitor", "PrometheusRule"}:
            kubernetes_validate.validate(one, "1.36", strict=True)


@pytest.mark.parametrize("name", OVERLAYS)
def test_complete(name):
    """Every overlay has the operator and the scheduler `main`; kinds are installed apart."""
    objects = overlay(name)

    assert [] == of_kind(objects, "CustomResourceDefinition"), "deleting an overlay deletes no kinds"
    assert ["main"] == [one["metadata"]["name"] for one in of_kind(objects, "Scheduler")]
    named = {one["metadata"]["name"] for one in of_kind(objects, "SchedulerPlugin")}
    assert named == {one["name"] for one in of_kind(objects, "Scheduler")[0]["spec"].get("plugins", ())}
    containers = of_kind(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"]
    assert ["operator"] == [one["name"] for one in containers]


def deployable():
    """The plugins of this repository, but for examples and what is of no use without an extender."""
    plugins = (KUSTOMIZE.parent / "out-of-tree-plugins").iterdir()
    return [path for path in plugins if path.name not in {"hello", "http-extender", "without-sdk"}]


def test_every_plugin():
    """The overlay of all plugins has those of this repository, each with an image file; kinds are apart."""
    objects = overlay("all-plugins")
    folders = {path.name: path for path in deployable()}

    assert set(folders) == {one["metadata"]["name"] for one in of_kind(objects, "SchedulerPlugin")}
    assert all((folder / "Dockerfile").is_file() for folder in folders.values())
    assert {
        "podgroups.scheduling.x-k8s.io",
        "elasticquotas.scheduling.x-k8s.io",
        "noderesourcetopologies.topology.node.k8s.io",
        "datasets.data.berth.dev",
        "queues.queues.berth.dev",
    } == {one["metadata"]["name"] for one in built(str(KUSTOMIZE / "third-party-crds"))}


@pytest.mark.parametrize(
    ("name", "profiles", "replicas"),
    [
        ("secondary", {"berth"}, 1),
        ("default", {"berth", "default-scheduler"}, 3),
        ("ha", {"berth"}, 3),
        ("sandbox", {"berth", "gpu-share"}, 1),
        ("all-plugins", {"berth", "gpu-share", "load-aware"}, 1),
    ],
)
def test_audience(name, profiles, replicas):
    """Each overlay has the profiles and replicas that it is there for."""
    spec = of_kind(overlay(name), "Scheduler")[0]["spec"]

    assert profiles == {one["schedulerName"] for one in spec["profiles"]}
    assert replicas == spec.get("replicas", 1)


def images(objects):
    """Give every image that is named anywhere."""
    found = set()
    for one in of_kind(objects, "Deployment"):
        for container in one["spec"]["template"]["spec"]["containers"]:
            named = (one["value"] for one in container["env"] if one["name"].endswith("_IMAGE"))
            found |= {container["image"], *named}
    return found | {one["spec"]["image"] for one in of_kind(objects, "SchedulerPlugin")}


def test_one_place_for_versions(tmp_path):
    """One file sets the version of every image, the schedulers' default included."""
    shutil.copytree(KUSTOMIZE, tmp_path / "k")
    file = tmp_path / "k" / "images" / "kustomization.yaml"
    file.write_text(file.read_text().replace(f"newTag: {version()}", "newTag: 9.9.9"))
    found = images(built(str(tmp_path / "k" / "overlays" / "all-plugins")))

    assert {"9.9.9"} == {image.rpartition(":")[2] for image in found}
    plugins = {path.name for path in deployable()}
    ours = {"berth/operator", "berth/scheduler", "berth/descheduler"}
    assert ours | {f"berth/{name}" for name in plugins} == {image.rpartition(":")[0] for image in found}


@pytest.mark.parametrize("name", PLUGINS)
def test_plugins_component(tmp_path, name):
    """A plugin's component gives the scheduler `main` the plugin, with an image of the project's version."""
    here = os.path.relpath(KUSTOMIZE, tmp_path.resolve())
    document = {
        "resources": [f"{here}/base", f"{here}/scheduler"],
        "components": [f"{here}/{each}" for each in ("config", f"components/plugins/{name}", "images")],
    }
    (tmp_path / "kustomization.yaml").write_text(json.dumps(document))
    objects = built(str(tmp_path))

    (scheduler,) = of_kind(objects, "Scheduler")
    (plugin,) = of_kind(objects, "SchedulerPlugin")
    assert [{"name": name}] == scheduler["spec"]["plugins"]
    assert (name, f"berth/{name}:{version()}") == (plugin["metadata"]["name"], plugin["spec"]["image"])


def test_users_patch(tmp_path):
    """A user's patch changes one profile and leaves the others; a prefix keeps names together."""
    shutil.copytree(KUSTOMIZE, tmp_path / "k")
    user = tmp_path / "user"
    user.mkdir()
    (user / "kustomization.yaml").write_text(
        json.dumps(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": ["resources.yaml"],
                "components": ["../k/config"],
                "namePrefix": "my-",
                "images": [{"name": "x", "newTag": "7"}],
                "patches": [{"path": "patch.yaml"}],
            }
        )
    )
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": sets("gpu-share", "NodeName")}]
    documents = [kit.scheduler(profiles=profiles, plugins=[{"name": "gpu-share"}], image="x"), kit.plugin()]
    (user / "resources.yaml").write_text(yaml.safe_dump_all(documents))
    patch = kit.scheduler(profiles=[{"schedulerName": "a", "percentageOfNodesToScore": 5}])
    (user / "patch.yaml").write_text(yaml.safe_dump(patch))
    spec = of_kind(built(str(user)), "Scheduler")[0]["spec"]

    by_name = {one["schedulerName"]: one for one in spec["profiles"]}
    assert (5, {"a", "b"}) == (by_name["a"]["percentageOfNodesToScore"], set(by_name))
    assert [{"name": "my-gpu-share"}] == spec["plugins"]
    assert sets("my-gpu-share", "NodeName") == by_name["b"]["plugins"]
    assert "x:7" == spec["image"]


def sets(*names):
    return {"filter": {"enabled": [{"name": name} for name in names]}}


def test_operator_may_bind():
    """The operator may bind the schedulers' roles, every one of them and nothing else."""
    roles = of_kind(overlay("secondary"), "ClusterRole")
    operator = next(one for one in roles if one["metadata"]["name"] == "berth-operator")
    bound = [rule for rule in operator["rules"] if "bind" in rule["verbs"]]
    schedulers = {
        one["metadata"]["name"] for one in roles if one["metadata"]["name"].startswith("berth-scheduler")
    }

    assert [schedulers] == [set(rule["resourceNames"]) for rule in bound]


def test_viewers():
    """Who may view a namespace may see our kinds; changing them takes a role of its own."""
    roles = {one["metadata"]["name"]: one for one in of_kind(overlay("secondary"), "ClusterRole")}
    prefix = "rbac.authorization.k8s.io/aggregate-to-"

    def aggregated(name):
        return {
            key.removeprefix(prefix) for key in roles[name]["metadata"]["labels"] if key.startswith(prefix)
        }

    assert {"view", "edit", "admin"} == aggregated("berth-viewer")
    apart = ("berth-editor", "berth-admin", "berth-cluster-viewer")
    assert set() == set().union(*map(aggregated, apart))


def test_small_definitions():
    """The definitions stay small enough for kubectl to note what it last applied."""
    for definition in (scheduler_definition(), plugin_definition()):
        assert 200_000 > len(json.dumps(definition))


def transformed(tmp_path, base, **fields):
    """Give what a user's own kustomization makes of one of ours."""
    (tmp_path / "kustomization.yaml").write_text(
        json.dumps({"resources": [os.path.relpath(KUSTOMIZE / base, tmp_path.resolve())], **fields})
    )
    return built(str(tmp_path))


@pytest.mark.parametrize("base", ["base", "overlays/all-plugins", "overlays/default"])
def test_other_namespace(tmp_path, base):
    """In another namespace the operator has all its rights: each binding follows its service account."""
    objects = transformed(tmp_path, base, namespace="sched-prod")
    subjects = [
        subject
        for one in of_kind(objects, "ClusterRoleBinding", "RoleBinding")
        for subject in one["subjects"]
    ]

    assert {"sched-prod"} == {one["namespace"] for one in subjects}
    assert {"sched-prod"} == {one["metadata"]["name"] for one in of_kind(objects, "Namespace")}


@pytest.mark.parametrize("renamed", [{"namePrefix": "prod-"}, {"nameSuffix": "-prod"}], ids=str)
@pytest.mark.parametrize("base", ["overlays/all-plugins", "overlays/default"])
def test_renamed(tmp_path, base, renamed):
    """Renamed, the operator binds and may bind the roles by their new names."""
    config = os.path.relpath(KUSTOMIZE / "config", tmp_path.resolve())
    objects = transformed(tmp_path, base, components=[config], **renamed)
    roles = {one["metadata"]["name"]: one for one in of_kind(objects, "ClusterRole")}
    (deployment,) = of_kind(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    reported = {one["name"]: one["value"] for one in container["env"]}
    settings = SchedulerDefaults(
        "x", role=reported["BERTH_SCHEDULER_ROLE"], affinity_role=reported["BERTH_SCHEDULER_AFFINITY_ROLE"]
    )
    may_bind = {
        name
        for role in roles.values()
        for rule in role["rules"]
        if "bind" in rule["verbs"]
        for name in rule["resourceNames"]
    }
    asked = {
        name for one in of_kind(objects, "SchedulerPlugin") for name in one["spec"].get("clusterRoles", ())
    }
    lease = {settings.role_of("lease-of-kube-scheduler")} if base == "overlays/default" else set()

    assert {settings.role, *map(settings.role_of, GROUPS), *lease} == may_bind - asked
    assert asked < may_bind < set(roles)
    assert [reported["BERTH_SCHEDULER_PRIORITY_CLASS"]] == [
        one["metadata"]["name"] for one in of_kind(objects, "PriorityClass")
    ]


def test_strategy_has_a_type():
    """kubectl patches a strategy without a type on every apply, and the Deployment is never unchanged."""
    strategies = [one["spec"]["strategy"] for one in of_kind(overlay("ha"), "Deployment")]

    assert ["RollingUpdate"] == [one.get("type") for one in strategies]


def test_base_alone():
    """The base names images with their versions: applied alone it starts what an overlay would."""
    names = ("operator", "scheduler", "descheduler")
    assert images(built(str(KUSTOMIZE / "base"))) == {f"berth/{name}:{version()}" for name in names}


def test_all_namespaces(tmp_path):
    """With the component the operator is bound, and configured to look, everywhere."""
    component = os.path.relpath(KUSTOMIZE / "components/all-namespaces", tmp_path.resolve())
    objects = transformed(tmp_path, "overlays/secondary", components=[component])
    (container,) = of_kind(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"]
    bound = {one["roleRef"]["name"] for one in of_kind(objects, "ClusterRoleBinding")}

    assert {"name": "BERTH_NAMESPACES", "value": "*"} in container["env"]
    assert {"berth-operator", "berth-operator-namespace"} == bound


@pytest.mark.parametrize("name", OVERLAYS)
def test_one_lease_with_kube_scheduler(name):
    """Where a profile is kube-scheduler's the lease is, too, and the operator may give the right to it."""
    objects = overlay(name)
    spec = of_kind(objects, "Scheduler")[0]["spec"]
    shares = any(one["schedulerName"] == "default-scheduler" for one in spec["profiles"])
    lease = {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}
    roles = {one["metadata"]["name"] for one in of_kind(objects, "ClusterRole")}

    assert shares == (lease.items() <= spec.get("leaderElection", {}).items())
    assert shares == ("berth-scheduler-lease-of-kube-scheduler" in roles)


def test_nothing_in_kube_system():
    """No overlay has an object outside its namespace, which a user's kustomization would move."""
    found = {one["metadata"].get("namespace", "berth-system") for name in OVERLAYS for one in overlay(name)}

    assert {"berth-system"} == found


@pytest.mark.parametrize("names", [{}, {"namePrefix": "prod-", "namespace": "sched-prod"}], ids=str)
def test_explanations_through_the_api_server(tmp_path, names):
    """The operator gets the Service that its APIService is to name, whatever its name."""
    config = os.path.relpath(KUSTOMIZE / "config", tmp_path.resolve())
    objects = transformed(tmp_path, "overlays/secondary", components=[config], **names)
    (container,) = of_kind(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"]
    (named,) = [one["value"] for one in container["env"] if one["name"] == "BERTH_EXPLAIN_SERVICE"]
    (found,) = [one for one in of_kind(objects, "Service") if one["metadata"]["name"] == named]

    assert PORT == found["spec"]["ports"][0]["port"]
    assert SELECTED == found["spec"]["selector"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_no_api_service_without_schedulers(name):
    """No overlay has an APIService: it would block the deletion of namespaces until a scheduler is ready."""
    assert [] == of_kind(overlay(name), "APIService")
