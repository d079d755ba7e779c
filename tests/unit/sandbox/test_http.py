import asyncio
import json
from types import SimpleNamespace

import kubernetes
import pytest

from berth.sandbox import SandboxError, SandboxOptions, serve
from berth.sandbox.http import HttpConnection
from berth.sandbox.request import json_response
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture
async def sandbox():
    """A sandbox on a free port, whose pods stop at once."""
    async with await serve(SandboxOptions(pod_grace_seconds=0)) as running:
        yield running


class Client:
    """A socket that speaks HTTP word by word."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.pending = []

    @classmethod
    async def open(cls, sandbox):
        host, port = sandbox.url.removeprefix("http://").split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, method, path, document=None, *headers):
        body = json.dumps(document).encode() if document is not None else b""
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def head(self):
        text = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)).decode()
        lines = text.splitlines()
        return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:] if line)

    async def answer(self):
        status, headers = await self.head()
        return status, await self.reader.readexactly(int(headers["content-length"]))

    async def chunk(self):
        size = int(await asyncio.wait_for(self.reader.readline(), PATIENCE_SECONDS), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def event(self):
        """Give (type, object) of the next event of a watch; a chunk may hold several."""
        if not self.pending:
            self.pending = [json.loads(line) for line in (await self.chunk()).splitlines()]
        found = self.pending.pop(0)
        return found["type"], found["object"]

    async def close(self):
        self.writer.close()
        await self.writer.wait_closed()


@pytest.fixture
async def client(sandbox):
    """A connection to the sandbox."""
    opened = await Client.open(sandbox)
    yield opened
    await opened.close()


@pytest.fixture
async def watcher(sandbox):
    """A second connection, for watches."""
    opened = await Client.open(sandbox)
    yield opened
    await opened.close()


async def test_pipelining(client):
    """Requests sent at once on one connection are answered in their order."""
    client.send("POST", PODS, POD)
    client.send("GET", f"{PODS}/a")
    client.send("GET", f"{PODS}/b")

    assert [201, 200, 404] == [(await client.answer())[0] for _ in range(3)]


async def test_body_in_pieces(client):
    """A request that arrives byte by byte is one request."""
    body = json.dumps(POD).encode()
    whole = f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    for byte in whole:
        client.writer.write(bytes([byte]))
        await client.writer.drain()

    assert 201 == (await client.answer())[0]


async def test_expect_continue(client):
    """A client that asks first may go on."""
    body = json.dumps(POD).encode()
    head = f"POST {PODS} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    client.writer.write(head.encode())

    assert 100 == (await client.head())[0]
    client.writer.write(body)
    assert 201 == (await client.answer())[0]


async def test_big_list(sandbox, client):
    """A list of many megabytes arrives whole, and what was asked meanwhile is answered after it."""
    filler = {"example.com/filler": "x" * 30_000}
    names = [f"p{number:03}" for number in range(350)]
    pod = {**POD, "kind": "Pod", "apiVersion": "v1"}
    documents = ({**pod, "metadata": {"name": name, "annotations": filler}} for name in names)
    sandbox.load(documents)
    client.send("GET", PODS)
    client.send("GET", "/healthz")
    status, headers = await client.head()
    listed = json.loads(await client.reader.readexactly(int(headers["content-length"])))

    assert (200, names) == (status, [item["metadata"]["name"] for item in listed["items"]])
    assert (200, b"ok") == await client.answer()


async def test_pipelined_watch(client):
    """A request sent together with a watch is answered after the watch."""
    client.send("GET", "/api/v1/pods?watch=1&timeoutSeconds=1")
    client.send("GET", "/healthz")

    assert "chunked" == (await client.head())[1]["transfer-encoding"]
    assert b"" == await client.chunk()
    assert (200, b"ok") == await client.answer()


async def test_malformed(client):
    """What is not HTTP is answered 400, and the connection closed."""
    client.writer.write(b"HELLO\r\n\r\n")

    assert 400 == (await client.answer())[0]
    assert b"" == await client.reader.read()


async def test_connection_close(client):
    """A client that wants the connection closed gets that after its answer."""
    client.send("GET", "/healthz", None, "Connection: close")

    assert (200, b"ok") == await client.answer()
    assert b"" == await client.reader.read()


async def test_warnings(client):
    """Unknown fields come back as Warning headers."""
    client.send("POST", PODS, {**POD, "colour": "red"})
    status, headers = await client.head()

    assert (201, '299 - "unknown field \\"colour\\""') == (status, headers["warning"])


async def test_watch(sandbox, client, watcher):
    """A watch streams what others write, and the connection can be used again after its end."""
    watcher.send("GET", f"/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={sandbox.store.revision}")
    assert "chunked" == (await watcher.head())[1]["transfer-encoding"]
    client.send("POST", PODS, POD)

    assert "ADDED" == (await watcher.event())[0]
    assert b"" == await watcher.chunk()
    watcher.send("GET", "/healthz")
    assert (200, b"ok") == await watcher.answer()


async def test_watch_bookmark(sandbox, client):
    """As with kube-apiserver, a bookmark comes two seconds before a watch's time is up."""
    revision = sandbox.store.revision
    query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={revision}"
    client.send("GET", f"/api/v1/pods?{query}")
    await client.head()

    kind, mark = await client.event()
    assert ("BOOKMARK", str(revision)) == (kind, mark["metadata"]["resourceVersion"])


async def test_a_short_watch_has_no_bookmark(sandbox, client):
    """A watch of two seconds or less ends without one."""
    query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={sandbox.store.revision}"
    client.send("GET", f"/api/v1/pods?{query}")
    await client.head()

    assert b"" == await client.chunk()


async def test_the_version_of_a_list_of_one_covers_every_write(sandbox, client):
    """A list without a resource version is as of now, whatever kind was written last."""
    sandbox.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{i}"}} for i in range(3))
    client.send("GET", "/api/v1/pods?limit=1")
    status, body = await client.answer()

    assert (200, str(sandbox.store.revision)) == (status, json.loads(body)["metadata"]["resourceVersion"])


async def test_watch_hung_up(sandbox, client):
    """A watcher that hangs up is forgotten."""
    pods = sandbox.store.collection("pods")
    before = len(pods._listeners)
    client.send("GET", "/api/v1/pods?watch=1")
    await client.head()
    assert before + 1 == len(pods._listeners)
    await client.close()
    # The server hears of it in a later turn of the loop; a request of another client is later still.
    other = await Client.open(sandbox)
    other.send("GET", "/healthz")
    await other.answer()
    await other.close()
    assert before == len(pods._listeners)


async def test_client_that_does_not_read():
    """The sandbox ends even if a client does not read its answer."""
    metadata = {"name": "large", "annotations": {"text": "x" * 200_000}}
    running = await serve(SandboxOptions())
    running.load([{**POD, "apiVersion": "v1", "kind": "Pod", "metadata": metadata}])
    deaf = await Client.open(running)
    for _ in range(100):
        deaf.send("GET", PODS)
    await until(lambda: any(each._paused for each in running._connections))
    closing = asyncio.create_task(running.close())
    ended, _ = await asyncio.wait([closing], timeout=PATIENCE_SECONDS)
    deaf.writer.transport.abort()

    assert closing in ended


async def until(claim):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not claim():  # noqa: ASYNC110 - the transport has no event for it
            await asyncio.sleep(0.01)


async def test_kubelet(client, watcher):
    """A bound pod runs on its node; a deleted one stops and goes."""
    watcher.send("GET", "/api/v1/pods?watch=1")
    await watcher.head()
    client.send("POST", PODS, POD)
    await client.answer()
    target = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert ("ADDED", "Pending") == phase(await watcher.event())
    client.send("POST", f"{PODS}/a/binding", target)
    assert ("MODIFIED", "Pending") == phase(await watcher.event())
    assert ("MODIFIED", "Running") == phase(await watcher.event())
    client.send("DELETE", f"{PODS}/a")
    assert ("MODIFIED", "Running") == phase(await watcher.event())
    assert ("DELETED", "Running") == phase(await watcher.event())


def phase(event):
    return event[0], event[1]["status"]["phase"]


async def test_python_client(sandbox):
    """The kubernetes package's client lists, creates, watches and deletes."""

    def work():
        configuration = kubernetes.client.Configuration(host=sandbox.url)
        with kubernetes.client.ApiClient(configuration) as api:
            core = kubernetes.client.CoreV1Api(api)
            core.create_namespaced_pod("default", POD)
            core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "y"}}})
            listed = core.list_pod_for_all_namespaces(label_selector="x=y")
            stream = kubernetes.watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=1)
            seen = [event["type"] for event in stream]
            core.delete_namespaced_pod("a", "default")
            return [pod.metadata.name for pod in listed.items], seen

    assert (["a"], ["ADDED"]) == await asyncio.to_thread(work)


async def test_port_in_use(sandbox):
    """A port that is taken is one clear line."""
    port = int(sandbox.url.rpartition(":")[2])

    with pytest.raises(SandboxError, match=f"cannot listen on 127.0.0.1:{port}"):
        await serve(SandboxOptions(port=port))


async def test_load(sandbox):
    """Loaded objects keep their status; what is there already is left alone."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "other", "resourceVersion": "7"},
        "spec": {"containers": [{"name": "c", "image": "x"}], "nodeName": "n", "priority": 5},
        "status": {"phase": "Running"},
    }

    assert (1, 0) == (sandbox.load([pod]), sandbox.load([pod]))
    stored = sandbox.store.collection("pods").get("other/a").decode()
    assert ("Running", 5) == (stored["status"]["phase"], stored["spec"]["priority"])
    with pytest.raises(SandboxError, match='no resource of kind "Thing"'):
        sandbox.load([{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}}])


async def test_kubeconfig(sandbox, tmp_path):
    """A kubeconfig is written where it is wanted, folders included; where that fails, one line says so."""
    path = tmp_path / "new" / "kubeconfig"
    sandbox.write_kubeconfig(path)

    assert sandbox.url == json.loads(path.read_text())["clusters"][0]["cluster"]["server"]
    with pytest.raises(SandboxError, match="cannot write the kubeconfig"):
        sandbox.write_kubeconfig(path / "below")


@reports("sandbox-breaks", log="`request failed`, with a traceback", answer="`500`, `InternalError`")
async def test_a_request_that_breaks(caplog):
    """A bug of the sandbox costs one request: the next one on the connection is answered."""

    def broken(request):
        if request.path == "/broken":
            raise ValueError("a bug")
        return json_response({})

    sandbox = await asyncio.get_running_loop().create_server(
        lambda: HttpConnection(broken, set()), "127.0.0.1", 0
    )
    async with sandbox:
        host, port = sandbox.sockets[0].getsockname()
        client = await Client.open(SimpleNamespace(url=f"http://{host}:{port}"))
        client.send("GET", "/broken")
        client.send("GET", "/whole")
        (failed, body), (whole, _) = await client.answer(), await client.answer()
        await client.close()

    assert (500, 200) == (failed, whole)
    assert "InternalError" == json.loads(body)["reason"]
    assert "request failed method=GET path=/broken" in caplog.text
