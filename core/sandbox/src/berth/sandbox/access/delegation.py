"""What components read that ask the API server who their own clients are.

kube-scheduler and others look this config map up at their start. Certificates of clients are not signed here,
so the authority for these proves no identity: tokens do, by TokenReview (reviews.py). That of the front proxy
signs one certificate, by which aggregated API servers know this one (aggregation/).
Source: pkg/controlplane/controller/clusterauthenticationtrust (v1.36).
"""

import json
from typing import Final

from berth.sandbox.aggregation import front_proxy
from berth.sandbox.store import Json

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_HEADERS: Final = {
    "requestheader-allowed-names": [front_proxy.NAME],
    "requestheader-extra-headers-prefix": [front_proxy.EXTRA_PREFIX],
    "requestheader-group-headers": [front_proxy.GROUP_HEADER],
    "requestheader-uid-headers": [front_proxy.UID_HEADER],
    "requestheader-username-headers": [front_proxy.USER_HEADER],
}


def trusted(clients: bytes, front_proxy: bytes) -> Json:
    """Give the config map that names both authorities, certificates in PEM."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": {
            "client-ca-file": clients.decode(),
            "requestheader-client-ca-file": front_proxy.decode(),
            **{key: json.dumps(names) for key, names in _HEADERS.items()},
        },
    }
