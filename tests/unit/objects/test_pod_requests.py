"""What a pod requests in total."""

import msgspec
import pytest

from berth.objects.pods.pod import ContainerStatus, PodCondition
from berth.objects.pods.pod_requests import (
    NON_ZERO_DEFAULTS,
    REMEMBERED_AMOUNTS,
    accounted_requests,
    fit_requests,
    in_units,
    non_zero_requests,
    placed_requests,
    pod_requests,
    scored_requests,
)
from berth.objects.pods.pod_spec import Container, Resources
from berth.objects.resource_names import is_extended, is_scalar
from berth.testing.builders import make_pod

MI = 2**20
GB = 10**9


def container(name="c", **requests):
    return Container(name, resources=Resources(requests=named(requests) or None))


def sidecar(name="s", **requests):
    return msgspec.structs.replace(container(name, **requests), restart_policy="Always")


def named(requests):
    return {name.replace("gpu", "example.com/gpu"): amount for name, amount in requests.items()}


def pod(*containers, init=(), pod_level=None, **spec):
    resources = Resources(requests=pod_level) if pod_level is not None else None
    return make_pod(containers=containers, init_containers=tuple(init), resources=resources, **spec)


def resized(spec, actuated=None, allocated=None, *, reasons=(), in_init=False):
    """A pod whose one container has these requests in spec and status."""
    status = ContainerStatus("c", Resources(requests=actuated), allocated)
    main = Container("c", resources=Resources(requests=spec))
    made = pod(main) if not in_init else pod(init=[msgspec.structs.replace(main, restart_policy="Always")])
    conditions = tuple(PodCondition("PodResizePending", "True", reason) for reason in reasons)
    where = "init_container_statuses" if in_init else "container_statuses"
    return msgspec.structs.replace(
        made, status=msgspec.structs.replace(made.status, conditions=conditions, **{where: (status,)})
    )


@pytest.mark.parametrize(
    ("made", "requests"),
    [
        (pod(container()), {}),
        (pod(container(cpu="1", memory="1Mi"), container(cpu="500m")), {"cpu": 1500, "memory": MI}),
        (
            pod(
                container(cpu="2", memory="1G"),
                container(cpu="1", memory="1G"),
                init=[container(cpu="2", memory="1G"), container(cpu="2", memory="3G")],
            ),
            {"cpu": 3000, "memory": 3 * GB},
        ),
        (pod(container(cpu="1"), init=[sidecar(cpu="2"), container(cpu="3")]), {"cpu": 5000}),
        (pod(container(cpu="1"), init=[container(cpu="3"), sidecar(cpu="2")]), {"cpu": 3000}),
        (pod(container(cpu="1"), pod_level={"cpu": "4"}, overhead={"cpu": "100m"}), {"cpu": 4100}),
        (
            pod(container(cpu="1", memory="1Gi"), pod_level={"memory": "3Gi"}),
            {"cpu": 1000, "memory": 3072 * MI},
        ),
        (
            pod(container(cpu="1", gpu="2"), pod_level={"example.com/gpu": "9", "ephemeral-storage": "1"}),
            {"cpu": 1000, "example.com/gpu": 2},
        ),
        (pod(container(cpu="0.3m"), container(cpu="0.3m")), {"cpu": 1}),
        (pod(container(storage="5", gpu="1")), {"example.com/gpu": 1}),
        (pod(container(), overhead={"memory": "1Mi"}), {"memory": MI}),
    ],
    ids=[
        "nothing",
        "sum of containers",
        "biggest init container",
        "sidecar before init container",
        "sidecar after init container",
        "pod level and overhead",
        "pod level of one resource",
        "pod level of what it cannot set",
        "rounded once",
        "unknown names are dropped",
        "overhead alone",
    ],
)
def test_what_has_to_be_free_on_a_node(made, requests):
    assert requests == fit_requests(made)
    assert requests == accounted_requests(made)


@pytest.mark.parametrize(
    ("made", "cpu"),
    [
        (resized({"cpu": "1"}, {"cpu": "2"}, {"cpu": "1"}), 2000),
        (resized({"cpu": "3"}, {"cpu": "1"}, {"cpu": "1"}), 3000),
        (resized({"cpu": "1"}, {"cpu": "1"}, {"cpu": "4"}), 4000),
        (resized({"cpu": "3"}, {"cpu": "1"}, {"cpu": "2"}, reasons=["Infeasible"]), 2000),
        (resized({"cpu": "3"}, {"cpu": "1"}, {"cpu": "2"}, reasons=["Deferred"]), 3000),
        (resized({"cpu": "3"}, {"cpu": "1"}, reasons=["Deferred", "Infeasible"]), 3000),
        (resized({"cpu": "1"}, {"cpu": "2"}, in_init=True), 2000),
    ],
    ids=[
        "shrinking",
        "growing",
        "allocated",
        "infeasible",
        "deferred",
        "only the first condition counts",
        "sidecar",
    ],
)
def test_a_resize_under_way_counts_on_the_node_only(made, cpu):
    assert cpu == accounted_requests(made)["cpu"]
    assert fit_requests(made) == fit_requests(msgspec.structs.replace(made, status=type(made.status)()))


def test_an_init_container_that_ends_is_not_resized():
    made = resized({"cpu": "1"}, {"cpu": "5"}, in_init=True)
    ends = msgspec.structs.replace(made.spec.init_containers[0], restart_policy="")
    spec = msgspec.structs.replace(made.spec, init_containers=(ends,))

    assert 1000 == accounted_requests(made.with_spec(spec))["cpu"]


@pytest.mark.parametrize(
    ("reasons", "cpu"), [((), 4000), (("Infeasible",), 0)], ids=["largest of all", "infeasible"]
)
def test_a_pod_level_resize(reasons, cpu):
    """What status does not tell of counts as nought where the wish cannot be met."""
    made = pod(container(cpu="1"), pod_level={"cpu": "4"})
    conditions = tuple(PodCondition("PodResizePending", "True", reason) for reason in reasons)
    status = msgspec.structs.replace(made.status, conditions=conditions, resources=Resources(requests={}))

    assert cpu == accounted_requests(msgspec.structs.replace(made, status=status))["cpu"]


@pytest.mark.parametrize(
    ("made", "requested_cpu", "non_zero"),
    [
        (pod(container()), 0, (100, 200 * MI)),
        (pod(container("a"), container("b"), overhead={"cpu": "50m"}), 50, (250, 400 * MI)),
        (pod(container(cpu="0")), 0, (0, 200 * MI)),
        (pod(container("a"), container("b"), pod_level={"cpu": "2"}), 2000, (2000, 400 * MI)),
        (pod(container(), init=[container("i", cpu="500m")]), 500, (500, 200 * MI)),
        (pod(container(cpu="100.5m")), 101, (101, 200 * MI)),
        (pod(container(cpu="1", memory="1Mi")), 1000, (1000, MI)),
        (pod(container(memory="1Mi"), pod_level={"cpu": "1"}), 1000, (1000, MI)),
    ],
)
def test_what_scoring_counts_for_containers_that_ask_for_nothing(made, requested_cpu, non_zero):
    assert requested_cpu == accounted_requests(made).get("cpu", 0)
    assert non_zero == non_zero_requests(made)


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("example.com/gpu", True, True),
        ("nvidia.com/gpu", True, True),
        ("cpu", False, False),
        ("storage", False, False),
        ("requests.example.com/gpu", False, False),
        ("kubernetes.io/thing", False, True),
        ("node.kubernetes.io/thing", False, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("example.com/" + "g" * 64, False, False),
        ("bad name/gpu", False, False),
    ],
)
def test_resource_names(name, extended, scalar):
    assert (extended, scalar) == (is_extended(name), is_scalar(name))


def test_equal_pods_share_no_requests():
    """What one pod's requests are is remembered for the next; what becomes of them is not."""
    first, _ = placed_requests(pod(container(cpu="1")))
    first["cpu"] = 0

    assert ({"cpu": 1000}, (1000, 200 * MI)) == placed_requests(pod(container(cpu="1")))


@pytest.mark.parametrize("count", [0, 1, REMEMBERED_AMOUNTS, REMEMBERED_AMOUNTS + 1])
def test_requests_of_containers_alone(count):
    """They are the same whether they are few enough to be remembered or not."""
    made = pod(*(container(f"c{i}", cpu=f"{i}m") for i in range(count)), container("last"))
    cpu = count * (count - 1) // 2

    assert (accounted_requests(made), (cpu + 100, 200 * MI * (count + 1))) == placed_requests(made)


@pytest.mark.parametrize("restart_policy", ["Always", ""])
def test_scoring_counts_each_container_that_leaves_something_out(restart_policy):
    """The shortcut for containers that run side by side comes to what adding them up comes to."""
    shapes = (
        {"cpu": "100m"},
        {"memory": "1Gi"},
        {},
        {"cpu": "0.1001", "memory": "1"},
        {"example.com/a": "2"},
    )
    containers = tuple(Container(resources=Resources(requests=each)) for each in shapes)
    started = tuple(msgspec.structs.replace(each, restart_policy=restart_policy) for each in containers)
    made = make_pod(containers=containers, init_containers=started)
    added_up = in_units(pod_requests(made, pod_level=False, defaults=NON_ZERO_DEFAULTS))

    assert added_up == scored_requests(made)
