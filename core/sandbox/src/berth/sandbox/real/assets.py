"""Where the programs of a real control plane are on this machine."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from berth.sandbox.errors import SandboxError

VARIABLE: Final = "KUBEBUILDER_ASSETS"
LAST_PLACE: Final = Path("/usr/local/kubebuilder/bin")
ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"


class Assets(msgspec.Struct, frozen=True):
    """The two programs."""

    etcd: Path
    api_server: Path


def find_assets(chosen: Path | None, environ: Mapping[str, str], last: Path = LAST_PLACE) -> Assets:
    """Find both in the folder chosen, else in the variable's, else in the last place.

    Raises: SandboxError that says what is missing where, and the remedy.
    """
    folder = chosen or Path(environ.get(VARIABLE) or last)
    found = Assets(folder / ETCD, folder / API_SERVER)
    missing = [path.name for path in (found.etcd, found.api_server) if not os.access(path, os.X_OK)]
    if missing:
        raise SandboxError(
            f"--real: no {' and no '.join(missing)} in {folder}: set {VARIABLE}, or --assets, to a folder "
            f"that has {ETCD} and {API_SERVER}, such as `setup-envtest use -p path` prints"
        )
    return found
