"""The command lines of etcd and kube-apiserver, and the files that they name.

One folder holds all of it and goes with the cluster. There is no controller manager, so admission plugins are
off whose work only it would complete: no pod could be created, no node be scheduled to, no volume be deleted.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from berth.sandbox.aggregation import FrontProxy, front_proxy
from berth.sandbox.free_port import LOOPBACK
from berth.sandbox.real.assets import Assets
from berth.serving.self_signed import self_signed

PRIVATE: Final = 0o600
USER: Final = "sandbox"
MASTERS: Final = "system:masters"
_FRONT_PROXY_FILES: Final = ("front-proxy-ca.crt", "front-proxy.crt", "front-proxy.key")
_WITHOUT_CONTROLLERS: Final = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection"
# Pod groups are alpha in 1.36, and beta, but off, in 1.37: they are served only where both ask for them, with
# the claims that they share, and with rules that taint devices. A version that the server does not have is
# passed over.
_POD_GROUPS: Final = (
    "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true,DRADeviceTaintRules=true",
    "--runtime-config=scheduling.k8s.io/v1alpha2,scheduling.k8s.io/v1beta1,resource.k8s.io/v1beta2",
)


class Ports(msgspec.Struct, frozen=True):
    """The ports of one cluster, all on loopback."""

    etcd: int
    etcd_peer: int
    api_server: int


class Secrets(msgspec.Struct, frozen=True):
    """What is written for the two programs: a serving certificate in PEM, and the administrator's token."""

    certificate: bytes
    token: str


def write_files(folder: Path, token: str) -> Secrets:
    """Write the certificate, the keys and the list of tokens into the folder."""
    certificate, key = self_signed()
    _write(folder / "tls.crt", certificate)
    _write(folder / "tls.key", key)
    _write(folder / "service-accounts.key", _signing_key())
    _write(folder / "tokens.csv", f'{token},{USER},{USER},"{MASTERS}"\n'.encode())
    proxy = FrontProxy().issued
    for name, pem in zip(_FRONT_PROXY_FILES, proxy, strict=True):
        _write(folder / name, pem)
    return Secrets(certificate, token)


def _signing_key() -> bytes:
    """Give a new key for the tokens of service accounts; kube-apiserver reads no PKCS #8 of this curve."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=PRIVATE)
    path.write_bytes(content)


def _front_proxy(folder: Path) -> list[str]:
    """Give the flags by which aggregated API servers know this one, and learn who asks."""
    authority, certificate, key = (folder / name for name in _FRONT_PROXY_FILES)
    return [
        f"--requestheader-client-ca-file={authority}",
        f"--requestheader-allowed-names={front_proxy.NAME}",
        f"--requestheader-username-headers={front_proxy.USER_HEADER}",
        f"--requestheader-uid-headers={front_proxy.UID_HEADER}",
        f"--requestheader-group-headers={front_proxy.GROUP_HEADER}",
        f"--requestheader-extra-headers-prefix={front_proxy.EXTRA_PREFIX}",
        f"--proxy-client-cert-file={certificate}",
        f"--proxy-client-key-file={key}",
    ]


def etcd_command(assets: Assets, folder: Path, ports: Ports) -> list[str]:
    """Give etcd's command line."""
    client, peer = f"http://{LOOPBACK}:{ports.etcd}", f"http://{LOOPBACK}:{ports.etcd_peer}"
    return [
        str(assets.etcd),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # Nothing here outlives the machine.
        "--unsafe-no-fsync",
    ]


def api_server_command(
    assets: Assets, folder: Path, ports: Ports, *, rbac: bool, pod_groups: bool, flags: Sequence[str] = ()
) -> list[str]:
    """Give kube-apiserver's command line, with more flags at its end."""
    signing_key = folder / "service-accounts.key"
    return [
        str(assets.api_server),
        f"--etcd-servers=http://{LOOPBACK}:{ports.etcd}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={ports.api_server}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'tls.crt'}",
        f"--tls-private-key-file={folder / 'tls.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-issuer=https://{LOOPBACK}:{ports.api_server}",
        f"--service-account-key-file={signing_key}",
        f"--service-account-signing-key-file={signing_key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--authorization-mode={'RBAC' if rbac else 'AlwaysAllow'}",
        # Off by default, on in many clusters: what works here works there.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        f"--disable-admission-plugins={_WITHOUT_CONTROLLERS}",
        "--allow-privileged=true",
        *_front_proxy(folder),
        *(_POD_GROUPS if pod_groups else ()),
        *flags,
    ]
