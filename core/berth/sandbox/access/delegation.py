"""What components read that ask the API server who their own clients are.

kube-scheduler and others look this config map up at their start. Certificates of clients are not signed here,
so the one that it names proves no identity: tokens do, by TokenReview (reviews.py).
Source: pkg/controlplane/controller/clusterauthenticationtrust (v1.36).
"""

import json
from typing import Final

from berth.sandbox.store import Json

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_HEADERS: Final = {
    "requestheader-allowed-names": ["front-proxy-client"],
    "requestheader-extra-headers-prefix": ["X-Remote-Extra-"],
    "requestheader-group-headers": ["X-Remote-Group"],
    "requestheader-username-headers": ["X-Remote-User"],
}


def trusted(authority: bytes) -> Json:
    """Give the config map that names the authority, a certificate in PEM."""
    pem = authority.decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {
            "client-ca-file": pem,
            "requestheader-client-ca-file": pem,
            **{key: json.dumps(names) for key, names in _HEADERS.items()},
        },
    }
