"""A real control plane's programs and command lines; tests/e2e runs the flow with stand-ins."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from berth.sandbox import SandboxError
from berth.sandbox.child_process import GRACE_SECONDS
from berth.sandbox.real.arguments import Ports, api_server_command, etcd_command, write_files
from berth.sandbox.real.assets import Assets, find_assets
from berth.sandbox.real.cluster import SERVER_GRACE_SECONDS
from tests.e2e.stand_in import install

PORTS = Ports(etcd=1, etcd_peer=2, api_server=3)
ASSETS = Assets(Path("/bin/etcd"), Path("/bin/kube-apiserver"))


@pytest.mark.parametrize(
    ("chosen", "variable", "found"),
    [
        pytest.param("a", "b", "a", id="what is chosen comes first"),
        pytest.param("", "b", "b", id="then the variable"),
        pytest.param("", "", "c", id="then the last place"),
    ],
)
def test_find(chosen, variable, found, tmp_path):
    """The programs are looked for in one folder, and both are taken from there."""
    for name in "abc":
        install(tmp_path / name, "etcd", "kube-apiserver")
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / variable)} if variable else {}

    assets = find_assets(tmp_path / chosen if chosen else None, environ, tmp_path / "c")

    assert Assets(tmp_path / found / "etcd", tmp_path / found / "kube-apiserver") == assets


def test_not_executable(tmp_path):
    """A file that cannot be executed is none of the programs."""
    install(tmp_path, "etcd", "kube-apiserver")
    (tmp_path / "etcd").chmod(0o600)

    with pytest.raises(SandboxError, match="--real: no etcd in "):
        find_assets(tmp_path, {})


def test_loopback_only(tmp_path):
    """Neither program listens to anything but loopback, on the ports that it is given."""
    addresses = [
        argument.partition("=")[2]
        for argument in (
            *etcd_command(ASSETS, tmp_path, PORTS),
            *api_server_command(ASSETS, tmp_path, PORTS, rbac=True, pod_groups=False),
        )
        if argument.startswith(("--listen-", "--bind-address", "--secure-port"))
    ]

    assert ["http://127.0.0.1:1", "http://127.0.0.1:2", "127.0.0.1", "3"] == addresses


def test_files_named(tmp_path):
    """Every file that the API server has to read is there, for its owner only."""
    write_files(tmp_path, "secret")
    arguments = api_server_command(ASSETS, tmp_path, PORTS, rbac=False, pod_groups=True)
    named = {Path(one.partition("=")[2]) for one in arguments if "-file=" in one}

    assert {0o600} == {path.stat().st_mode & 0o777 for path in named}
    assert 'secret,sandbox,sandbox,"system:masters"\n' == (tmp_path / "tokens.csv").read_text()


def test_grace():
    """Both servers have ended before the sandbox's caller gives up, which would leave them behind."""
    assert 2 * SERVER_GRACE_SECONDS < GRACE_SECONDS


def test_signing_key(tmp_path):
    """Service accounts' tokens are signed with a key in the form that kube-apiserver reads."""
    write_files(tmp_path, "secret")

    key = (tmp_path / "service-accounts.key").read_bytes()
    assert key.startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert 256 == load_pem_private_key(key, None).key_size


@pytest.mark.parametrize("wanted", [True, False])
def test_choices(wanted, tmp_path):
    """Authorization and pod groups are as chosen."""
    arguments = api_server_command(ASSETS, tmp_path, PORTS, rbac=wanted, pod_groups=wanted)

    assert f"--authorization-mode={'RBAC' if wanted else 'AlwaysAllow'}" in arguments
    gates = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true,DRADeviceTaintRules=true"
    assert wanted == (gates in arguments)


def test_flags_of_the_user(tmp_path):
    """They come last, where they count."""
    more = ("--feature-gates=A=true", "--v=4")
    arguments = api_server_command(ASSETS, tmp_path, PORTS, rbac=False, pod_groups=True, flags=more)

    assert list(more) == arguments[-2:]
