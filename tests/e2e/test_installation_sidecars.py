"""What one sidecar can reach of another, by the pods that both API servers' controllers make."""

from collections import Counter

import pytest

from tests.e2e.container_views import Views, containers, needs_root
from tests.e2e.operated_installation import INSTALLATIONS, operated
from tests.e2e.socket_as_user import TRUSTED

pytestmark = pytest.mark.e2e
SCHEDULER, PLUGIN, OTHER = "scheduler", "plugin-gpu-share", "plugin-queues"
SIDECARS = {
    PLUGIN,
    OTHER,
    *(
        f"plugin-{name}"
        for name in (
            "coscheduling",
            "data-locality",
            "load-aware",
            "numa-aware",
            "rack-aware",
        )
    ),
}
SOCKET = "/run/berth/gpu-share/private/plugin.sock"
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
# Of no container, and not of the pod's group.
STRANGER = 65599


@pytest.fixture(scope="module", params=INSTALLATIONS)
def pod(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sidecars")
    with operated(folder, "all-plugins", INSTALLATIONS[request.param]) as cluster:
        cluster.until(cluster.pods, "there is a pod")
        yield cluster.pods()[0]


@pytest.fixture
def views(pod, tmp_path):
    needs_root()
    return Views(pod, tmp_path)


def mounts(pod, name):
    return {one["mountPath"]: one["name"] for one in containers(pod)[name]["volumeMounts"]}


def test_tokens(pod):
    """Of all sidecars only those have a token whose plugins ask the API server themselves."""
    holders = {name for name in containers(pod) if TOKENS in mounts(pod, name)}

    assert {*SIDECARS, SCHEDULER} == containers(pod).keys()
    assert {SCHEDULER, OTHER, "plugin-coscheduling", "plugin-load-aware"} == holders
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_volumes(pod):
    """No two sidecars have a volume in common, and none has any of the scheduler's but its socket's."""
    used = Counter(
        volume for name in SIDECARS for path, volume in mounts(pod, name).items() if path != TOKENS
    )
    shared = set(used) & set(mounts(pod, SCHEDULER).values())

    assert {1} == set(used.values())
    assert {f"socket-{name.removeprefix('plugin-')}" for name in SIDECARS} == shared


def test_users(pod):
    """Each sidecar has a user of its own."""
    users = [containers(pod)[name]["securityContext"]["runAsUser"] for name in SIDECARS]

    assert len(SIDECARS) == len({*users} - {pod["spec"]["securityContext"]["runAsUser"]})


def test_scheduler_dials(views):
    """The scheduler trusts the socket that the sidecar's user serves."""
    with views.serving(PLUGIN, SOCKET):
        assert TRUSTED == views.ask(SCHEDULER, "check", SOCKET, views.user(PLUGIN))


def test_another_sidecar_dials(views):
    """Another sidecar, though of the same group, has no way to the socket."""
    with views.serving(PLUGIN, SOCKET):
        assert "No such file or directory" == views.ask(OTHER, "dial", SOCKET)


def test_another_user_dials(views):
    """A user who is not of the pod's group is refused even where the volume can be reached."""
    with views.serving(PLUGIN, SOCKET):
        assert "Permission denied" == views.ask(PLUGIN, "dial", SOCKET, user=STRANGER, group=STRANGER)


def test_another_sidecar_serves(views):
    """Whatever user of another sidecar serves in the volume, the scheduler sends it nothing."""
    other = views.user(OTHER)
    with views.serving(PLUGIN, SOCKET, user=other):
        said = views.ask(SCHEDULER, "check", SOCKET, views.user(PLUGIN))

    assert f"belongs to user {other}, which is neither ours nor root nor {views.user(PLUGIN)}" in said
