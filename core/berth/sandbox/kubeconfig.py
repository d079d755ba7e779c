"""The kubeconfig with which clients reach a sandbox."""

import json


def kubeconfig_text(url: str) -> str:
    """Give a kubeconfig for a server without TLS and without credentials."""
    context = {"cluster": "berth-sandbox", "user": "berth-sandbox", "namespace": "default"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "berth-sandbox", "cluster": {"server": url}}],
        "users": [{"name": "berth-sandbox", "user": {}}],
        "contexts": [{"name": "berth-sandbox", "context": context}],
        "current-context": "berth-sandbox",
    }
    # JSON is YAML, and needs no writer that could quote anything wrongly.
    return json.dumps(document, indent=2) + "\n"
