import msgspec
import pytest

from berth.sandbox.api import SandboxApi
from berth.sandbox.request import CompleteAnswer, ReceivedRequest
from berth.sandbox.store import SandboxStore

NOW = 1_700_000_000.0
PODS = "/api/v1/namespaces/default/pods"


class Server:
    """The API without its socket: requests in, decoded answers out."""

    def __init__(self, history_limit=20_000):
        self.now = NOW
        self.store = SandboxStore(history_limit)
        self.api = SandboxApi(self.store, lambda: self.now)
        self.headers = {}
        self.post("/api/v1/namespaces", {"metadata": {"name": "default"}})

    def call(self, method, path, body=None, media="application/json", accept="application/json", **query):
        """Give (status, document) of a request."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body) if body is not None else b""
        parameters = {key: str(value) for key, value in query.items()}
        self.request = ReceivedRequest(
            method, path, parameters, {"content-type": media, "accept": accept, **self.headers}, raw
        )
        answer = self.api.handle(self.request)
        if not isinstance(answer, CompleteAnswer):
            return answer
        return answer.status, msgspec.json.decode(b"".join(answer.parts))

    def get(self, path, **query):
        return self.call("GET", path, **query)

    def post(self, path, body, **query):
        return self.call("POST", path, body, **query)

    def put(self, path, body, **query):
        return self.call("PUT", path, body, **query)

    def delete(self, path, body=None, **query):
        return self.call("DELETE", path, body, **query)

    def patch(self, path, body, kind="merge", **query):
        media = {"apply": "application/apply-patch+yaml", "json": "application/json-patch+json"}
        return self.call("PATCH", path, body, media.get(kind, f"application/{kind}-patch+json"), **query)

    def watch(self, path, **query):
        """Start a watch; a declined one gives (status, document)."""
        return self.call("GET", path, watch="true", **query)

    def pod(self, name="a", **spec):
        """Create a pod and give it."""
        metadata = {"name": name, "labels": spec.pop("labels", {})}
        spec.setdefault("containers", [{"name": "c", "image": "x:1"}])
        status, created = self.post(PODS, {"metadata": metadata, "spec": spec})
        assert status == 201, created
        return created

    def bind(self, name="a", node="n1", **metadata):
        target = {"kind": "Node", "name": node}
        return self.post(f"{PODS}/{name}/binding", {"metadata": {"name": name, **metadata}, "target": target})


@pytest.fixture
def server():
    """A fresh API with the default namespace."""
    return Server()


@pytest.fixture
def small_history():
    """The same, with a history of one write."""
    return Server(history_limit=1)


def events(watch):
    """Decode what a watch gives now, as (type, object)."""
    decoded = [msgspec.json.decode(line) for line in b"".join(watch.pull()).splitlines()]
    return [(event["type"], event["object"]) for event in decoded]
