"""client-go, the library through which kube-scheduler does all its I/O, against a sandbox process.

Each claim is one of tests/e2e/client_go/main.go. kube-scheduler itself is run by test_kube_scheduler.py.
"""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from berth.sandbox.free_port import free_port
from berth.sandbox.journal import StoreJournal
from berth.sandbox.store import SandboxStore
from tests.go_toolchain import CLIENT_GO, CLIENT_GO_FLAGS, run_go
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

PLAIN = (
    "informers-by-watch-list",
    "informers-by-list",
    "finished-pods",
    "bookmarks",
    "pages",
    "custom-resources",
    "election",
    "events",
    "scheduling",
    "preemption",
    "volumes",
    "resource-claims",
    "discovery",
)
GUARDED = ("informers-by-watch-list", "scheduling", "delegated-access")
# What needs no object of a kind that kube-scheduler only reads.
PROTOBUF = (
    "informers-by-watch-list",
    "bookmarks",
    "pages",
    "election",
    "events",
    "delegated-access",
    "discovery",
)
RECONNECT = ("reconnect-by-watch-list", "reconnect-by-list")
JSON = "-content-type=application/json"
RBAC = "--authorization-mode=RBAC"


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The program, built."""
    built = tmp_path_factory.mktemp("client-go") / "client_go"
    done = run_go(
        "build", *CLIENT_GO_FLAGS, "-ldflags=-s -w", "-o", str(built), ".", folder=CLIENT_GO, capture=True
    )
    assert done.returncode == 0, done.stdout
    return built


@contextmanager
def sandbox(kubeconfig, *arguments):
    """A sandbox process that serves until the end of the block."""
    command = [sys.executable, "-m", "berth.cli", "sandbox", "up", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("sandbox ready at ")
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        process.stdout.close()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The kubeconfig of a sandbox as `berth sandbox up` starts it."""
    kubeconfig = tmp_path_factory.mktemp("plain") / "kubeconfig"
    with sandbox(kubeconfig):
        yield kubeconfig


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The kubeconfig of a sandbox that serves TLS and asks for tokens."""
    kubeconfig = tmp_path_factory.mktemp("guarded") / "kubeconfig"
    with sandbox(kubeconfig, RBAC):
        yield kubeconfig


@pytest.fixture(scope="module")
def other_guarded(tmp_path_factory):
    """The kubeconfig of another such sandbox: each claim makes its own objects once."""
    kubeconfig = tmp_path_factory.mktemp("other") / "kubeconfig"
    with sandbox(kubeconfig, RBAC):
        yield kubeconfig


def hold(program, kubeconfig, claim, *flags):
    """Hold a claim against the sandbox."""
    command = [program, "-kubeconfig", kubeconfig, *flags, claim]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("claim", PLAIN)
def test_claim(claim, program, plain):
    """What kube-scheduler asks of an API server, client-go gets from the sandbox."""
    hold(program, plain, claim, JSON)


@pytest.mark.parametrize("claim", GUARDED)
def test_claim_over_tls(claim, program, guarded):
    """The same holds with TLS, tokens and RBAC."""
    hold(program, guarded, claim, JSON)


@pytest.mark.parametrize("claim", PROTOBUF)
def test_claim_in_protobuf(claim, program, other_guarded):
    """The same holds for objects in protobuf, as which kube-scheduler sends them by default."""
    hold(program, other_guarded, claim)


def test_reconnect(program, tmp_path):
    """Informers whose sandbox was restarted, and meanwhile lost a pod, learn of that from the next one."""
    kubeconfig, data = tmp_path / "kubeconfig", tmp_path / "data"
    arguments = f"--data-file={data}", f"--port={free_port()}"
    with sandbox(kubeconfig, *arguments):
        informers = [start(program, kubeconfig, claim) for claim in RECONNECT]
        assert ["synced\n"] * 2 == [each.stdout.readline() for each in informers]
    lose(data, *(f"{claim}/lost" for claim in RECONNECT))
    with sandbox(kubeconfig, *arguments):
        said = [each.communicate("back\n", timeout=PATIENCE_SECONDS)[1] for each in informers]
    assert [0, 0] == [each.returncode for each in informers], said


def lose(data, *keys):
    """Delete pods of a sandbox that does not run."""
    store = SandboxStore()
    journal = StoreJournal.open(data, store)
    pods = store.collection("pods")
    for key in keys:
        pods.delete(key, pods.get(key).decode())
    journal.close()


def start(program, kubeconfig, claim):
    """Start a claim that talks to its test."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([program, "-kubeconfig", kubeconfig, JSON, claim], text=True, **pipes)


def test_claims_are_all_held(program):
    """Every claim of the program is held by a test."""
    listed = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()

    assert {line.split("\t")[0] for line in listed} == {*PLAIN, *GUARDED, *RECONNECT}
