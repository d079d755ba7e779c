"""The kubeconfig with which clients reach a sandbox."""

import json
from base64 import b64encode


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
