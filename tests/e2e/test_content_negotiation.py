"""A parameter of `Accept` that API servers before 1.38 do not know (KEP-5958, #139561)."""

import json
import ssl
import urllib.request

import pytest

from berth.client.authentication.credentials import load_endpoint
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

DROP = "application/json;drop=metadata.managedFields"
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}


def asked(cluster, path, accept):
    """The status, the content type and the first object of an answer, be it a list or a watch."""
    endpoint = load_endpoint(kubeconfig=cluster.environment["KUBECONFIG"], environ={})
    headers = {"Accept": accept}
    if token := endpoint.authorization.current():
        headers["Authorization"] = token
    request = urllib.request.Request(f"{cluster.url}{path}", headers=headers)
    context = endpoint.ssl_context or ssl.create_default_context()
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=context) as answer:
        document = json.loads(answer.readline())
        kind = answer.headers["Content-Type"]
    found = document["items"][0] if "items" in document else document["object"]
    return answer.status, kind, found["metadata"]["name"], found["data"]


def test_a_client_that_asks_for_no_managed_fields(cluster):
    """Lists and watches are answered as to others: it needs no second try, and no other media type."""
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=APPLIED)
    path = "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dc"
    answers = [
        asked(cluster, f"{path}{watch}", accept)
        for accept in (DROP, f"{DROP}, application/json", "application/json")
        for watch in ("", "&watch=true&timeoutSeconds=5")
    ]

    assert [(200, "application/json", "c", {"a": "b"})] * 6 == answers
