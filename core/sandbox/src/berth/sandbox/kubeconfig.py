"""The kubeconfig with which clients reach a sandbox."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Final

from berth.sandbox.errors import SandboxError

PRIVATE: Final = 0o600


def kubeconfig_text(url: str, *, authority: bytes = b"", token: str = "") -> str:
    """Give a kubeconfig for a server; a PEM certificate to trust and a token where it asks for them."""
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = b64encode(authority).decode()
    context = {"cluster": "berth-sandbox", "user": "berth-sandbox", "namespace": "default"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "berth-sandbox", "cluster": cluster}],
        "users": [{"name": "berth-sandbox", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "berth-sandbox", "context": context}],
        "current-context": "berth-sandbox",
    }
    # JSON is YAML, and needs no writer that could quote anything wrongly.
    return json.dumps(document, indent=2) + "\n"


def write_kubeconfig(path: Path, text: str) -> None:
    """Write a kubeconfig, all of it at once, for its owner only.

    Raises: SandboxError when the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.touch(mode=PRIVATE)
        fresh.write_text(text)
        # A reader that waits for the file must not read half of it.
        fresh.replace(path)
    except OSError as error:
        raise SandboxError(f"cannot write the kubeconfig {path}: {error.strerror}") from None
