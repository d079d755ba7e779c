"""What is applied to a cluster: the overlays as one file each, and the manifest of kubectl's plugin."""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.go_toolchain import ROOT

KUBECTL = Path(sys.executable).parent / "kubectl"
KUSTOMIZE = ROOT / "kustomize"
RELEASES = "https://github.com/berth-scheduler/berth/releases/download"
_HEADER = "# Berth {version}: {of}. Made by `make dist` of kustomize/; {remark}\n"
_RUN = """\
#!/bin/sh
# Runs the program of this file's name, of the wheels beside it, in an environment that uv or pipx keeps.
set -eu
program=$(basename "$0")
here=$(dirname "$(readlink -f "$0")")
wheel=$(echo "$here"/berth_scheduler-*.whl)
if command -v uv > /dev/null; then
    exec uv tool run --quiet --find-links "$here" --from "$wheel" "$program" "$@"
elif command -v pipx > /dev/null; then
    exec pipx run --quiet --pip-args="--find-links=$here" --spec "$wheel" "$program" "$@"
fi
echo "Error: kubectl berth needs uv or pipx on PATH" >&2
exit 2
"""


PROGRAMS = ("kubectl-berth", "kubectl_complete-berth")
# krew links `bin` alone. A link to that link goes on leading to the version that is installed.
_CAVEATS = """\
Needs uv or pipx on PATH, and Python 3.11 or newer.
For completion: ln -s kubectl-berth "${KREW_ROOT:-$HOME/.krew}/bin/kubectl_complete-berth"
"""


def kustomized(folder: Path) -> list[dict[str, Any]]:
    """The objects that a kustomization makes."""
    return list(yaml.safe_load_all(_built(folder)))


def write_installations(folder: Path, version: str) -> None:
    """Write crds.yaml, then install.yaml, beside kube-scheduler, and replace.yaml, in its place."""
    crds = _built(KUSTOMIZE / "crds")
    (folder / "crds.yaml").write_text(crds, encoding="utf-8")
    for name, overlay in (("install.yaml", "secondary"), ("replace.yaml", "default")):
        header = _HEADER.format(
            version=version, of=f"the overlay {overlay}", remark="crds.yaml comes before it."
        )
        text = f"{header}{_built(KUSTOMIZE / 'overlays' / overlay)}"
        (folder / name).write_text(text, encoding="utf-8")


def write_kubectl_plugin(folder: Path, version: str) -> None:
    """Pack kubectl-berth with the wheels that it runs, and write krew's manifest of it.

    Source: krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
    """
    name = f"kubectl-berth-{version}.tar.gz"
    wheels = [folder / f"berth_{each}-{version}-py3-none-any.whl" for each in ("plugin_proto", "scheduler")]
    files = {each.name: each.read_bytes() for each in wheels}
    files |= {program: _RUN.encode() for program in PROGRAMS}
    archive = packed({**files, "LICENSE": (ROOT / "LICENSE").read_bytes()}, executables=PROGRAMS)
    (folder / name).write_bytes(archive)
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "berth"},
        "spec": {
            "version": f"v{version}",
            "homepage": "https://github.com/berth-scheduler/berth",
            "shortDescription": "Explain pods and keep plugins of the Berth scheduler",
            "description": "Asks a running Berth scheduler why a pod is where it is, or why it is nowhere, "
            "and lists, attaches and takes out its plugins.",
            "caveats": _CAVEATS,
            "platforms": [
                {
                    "selector": {
                        "matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]
                    },
                    "uri": f"{RELEASES}/v{version}/{name}",
                    "sha256": hashlib.sha256(archive).hexdigest(),
                    "bin": PROGRAMS[0],
                }
            ],
        },
    }
    (folder / "berth.krew.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")


def packed(files: Mapping[str, bytes], executables: Collection[str] = ()) -> bytes:
    """A .tar.gz of the files, which is the same whenever the files are."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o755 if name in executables else 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return gzip.compress(made.getvalue(), mtime=0)


def _built(folder: Path) -> str:
    """Raises: RuntimeError with what kustomize said."""
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"kustomize {folder}: {done.stderr}")
    return done.stdout
