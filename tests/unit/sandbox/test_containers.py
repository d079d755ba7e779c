"""Containers that really run: what they are given, and what becomes of their pod's status."""

import json
import os
import sys
from pathlib import Path

import pytest

from berth.sandbox import SandboxError, SandboxOptions, serve
from berth.sandbox.containers import Images
from berth.sandbox.rest import Deletion
from tests.unit.scheduler_at_work import eventually

PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("bye", flush=True), sys.exit(0)))
root = os.environ["CONTAINER_SANDBOX_MOUNT_POINT"]
print("arguments", sys.argv[1:], flush=True)
print("token", open(root + "/var/run/secrets/kubernetes.io/serviceaccount/token").read(), flush=True)
open(os.environ["OUT"], "w").write(os.environ["NAME"])
while not os.path.exists(root + "/shared/fail"):
    time.sleep(0.02)
sys.exit(3)
"""


@pytest.fixture
async def sandbox(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = (sys.executable, str(tmp_path / "program.py"))
    images = Images([("real/broken", ()), ("real/*", command)])
    async with await serve(SandboxOptions(rbac=True, images=images)) as running:
        yield running


def pod(**container):
    main = {
        "name": "main",
        "image": "real/program:1",
        "args": ["--config=/etc/app/settings.txt", "--listen=0.0.0.0:80", "$(NAME)", "/etc/apparel"],
        "env": [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "OUT", "value": "/shared/out"},
        ],
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/app"},
            {"name": "shared", "mountPath": "/shared"},
        ],
        **container,
    }
    volumes = [{"name": "config", "configMap": {"name": "settings"}}, {"name": "shared", "emptyDir": {}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [main], "volumes": volumes},
    }


def settings(text):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings"},
        "data": {"settings.txt": text},
    }


def begin(sandbox, *documents):
    for document in documents:
        sandbox.load([document])
    sandbox.api.rest.change(pods(sandbox), "default", "p", lambda one: one["spec"].update(nodeName="n1"))


def pods(sandbox):
    return sandbox.api.catalogue.get("", "v1", "pods")


def status(sandbox):
    entry = sandbox.store.collection("pods").get("default/p")
    return entry.decode()["status"] if entry else {}


def container(sandbox):
    return (status(sandbox).get("containerStatuses") or [{}])[0]


def is_ready(sandbox):
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in status(sandbox).get("conditions", ())
    )


def log(sandbox):
    return sandbox.api.logs("default/p", "main")


def read(root, path):
    return Path(root, path).read_text()


def run(sandbox):
    return sandbox.runs._runs["default/p"]


def test_commands(tmp_path):
    """A container's own command is looked up beside the image's first."""
    (tmp_path / "other").touch()
    images = Images([("x", (str(tmp_path / "one"), "-v"))])

    assert (str(tmp_path / "one"), "-v") == images.command({"image": "x"})
    assert (str(tmp_path / "other"), "a") == images.command({"image": "x", "command": ["other", "a"]})


async def test_given(sandbox):
    """A container gets arguments, environment, volumes and token, mount paths with its root before them."""
    begin(sandbox, settings("see /etc/app/more.txt"), pod())
    await eventually(lambda: is_ready(sandbox) and "token" in log(sandbox))

    root = str(run(sandbox).folder.path / "0")
    out = Path(root, "shared/out")
    address = status(sandbox)["podIP"]
    shown = [f"--config={root}/etc/app/settings.txt", f"--listen={address}:80", "p", "/etc/apparel"]
    assert f"arguments {shown}" in log(sandbox)
    assert f"see {root}/etc/app/more.txt" == read(root, "etc/app/settings.txt")
    token = log(sandbox).partition("token ")[2].split()[0]
    assert "system:serviceaccount:default:default" == sandbox.access.by_token(token).name
    await eventually(lambda: out.exists() and out.read_text() == "p")


async def test_config_map_follows(sandbox):
    """A mounted file changes with its ConfigMap, all at once."""
    begin(sandbox, settings("old"), pod())
    await eventually(lambda: is_ready(sandbox))
    file = run(sandbox).folder.path / "0/etc/app/settings.txt"
    maps = sandbox.api.catalogue.get("", "v1", "configmaps")
    before = (file.parent / "..data").readlink()
    sandbox.api.rest.change(
        maps, "default", "settings", lambda one: one["data"].update({"settings.txt": "new"})
    )
    await eventually(lambda: file.read_text() == "new")

    assert before != (file.parent / "..data").readlink()


async def test_restarted(sandbox):
    """A container that ends is started again, and its status says how it ended."""
    begin(sandbox, settings(""), pod())
    await eventually(lambda: is_ready(sandbox))
    flag = run(sandbox).folder.path / "v-shared/fail"
    flag.touch()
    await eventually(lambda: "waiting" in container(sandbox).get("state", {}))
    assert "CrashLoopBackOff" == container(sandbox)["state"]["waiting"]["reason"]
    assert (3, "Error") == tuple(
        container(sandbox)["lastState"]["terminated"][key] for key in ("exitCode", "reason")
    )

    flag.unlink()
    await eventually(lambda: container(sandbox)["restartCount"] > 0 and is_ready(sandbox))


async def test_waits_for_volume(sandbox):
    """A pod starts when its ConfigMap is there, and says until then what is missing."""
    begin(sandbox, pod())
    await eventually(lambda: "not found" in json.dumps(status(sandbox)))
    said = container(sandbox)["state"]["waiting"]["message"]
    assert said.endswith(': configmap "settings" not found')
    assert [said] == [
        entry.decode()["message"]
        for entry in sandbox.store.collection("events").entries()
        if entry.decode()["reason"] == "FailedMount"
    ]

    sandbox.load([settings("")])
    await eventually(lambda: is_ready(sandbox))


async def test_image(sandbox):
    """An image that cannot be had keeps the pod waiting."""
    begin(sandbox, settings(""), pod(image="real/broken"))

    await eventually(lambda: "ImagePullBackOff" in json.dumps(status(sandbox)))
    assert not is_ready(sandbox)


async def test_sidecar_first(sandbox):
    """A sidecar runs before the containers, and its probe holds them up."""
    probe = {
        "exec": {
            "command": [sys.executable, "-c", "import sys,os;sys.exit(not os.path.exists('/shared/go'))"]
        }
    }
    document = pod()
    sidecar = {**pod()["spec"]["containers"][0], "name": "side", "restartPolicy": "Always"}
    document["spec"]["initContainers"] = [{**sidecar, "startupProbe": {**probe, "failureThreshold": 1000}}]
    begin(sandbox, settings(""), document)
    await eventually(
        lambda: "running" in (status(sandbox).get("initContainerStatuses") or [{}])[0].get("state", {})
    )
    assert "waiting" in container(sandbox)["state"]

    (run(sandbox).folder.path / "v-shared/go").touch()
    await eventually(lambda: is_ready(sandbox))


async def test_stopped(sandbox):
    """A deleted pod's process is asked to end, and the pod goes once it has."""
    begin(sandbox, settings(""), pod())
    await eventually(lambda: is_ready(sandbox) and "token" in log(sandbox))
    pid = sandbox.runs.pid("default/p", "main")
    folder = run(sandbox).folder.path
    resource = pods(sandbox)
    sandbox.api.rest.delete(
        resource, sandbox.api.rest.read(resource, "default", "p"), Deletion(grace_seconds=5)
    )
    await eventually(lambda: sandbox.store.collection("pods").get("default/p") is None)

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not folder.exists()


async def test_needs_tokens():
    """Images are run with tokens of service accounts, which takes RBAC."""
    with pytest.raises(SandboxError, match="authorization-mode=RBAC"):
        await serve(SandboxOptions(images=Images([("*", ("x",))])))


def test_bad_pattern():
    """A pattern without a command is refused."""
    with pytest.raises(SandboxError, match="write PATTERN=COMMAND"):
        Images.parse(["berth"])
