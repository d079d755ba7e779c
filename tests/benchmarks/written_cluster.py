"""An API server whose lists were written beforehand, so that it costs next to no CPU itself.

Bindings are taken, and shown to the watches of pods; whatever else is written is accepted and forgotten.
"""

import asyncio
import json
import re
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

from tests.benchmarks.workloads import node_bytes
from tests.e2e.faults import pod

VERSION = 4_000_000
CREATED = "2026-01-02T03:04:05Z"
NONE = b'{"metadata":{"resourceVersion":"%d"},"items":[]}' % VERSION
PODS = "/api/v1/pods"
BINDING = re.compile(r"^/api/v1/namespaces/default/pods/([^/]+)/binding$")
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


class Pages:
    """The pages of a list of these documents."""

    def __init__(self, documents):
        self._written = [json.dumps(each, separators=(",", ":")).encode() for each in documents]

    def page(self, first, limit):
        """So many of them, all where `limit` is 0."""
        end = first + limit if limit else len(self._written)
        token = str(end) if end < len(self._written) else ""
        about = json.dumps({"resourceVersion": str(VERSION), "continue": token}).encode()
        return b'{"metadata":%b,"items":[%b]}' % (about, b",".join(self._written[first:end]))


def nodes(count):
    """Nodes as an API server returns them."""
    for i, each in enumerate(node_bytes(count)):
        yield stored(json.loads(each), i)


def stored(document, number):
    """The document with what the API server adds when it is created."""
    digits = f"{number:012x}"
    document["metadata"] |= {
        "uid": f"7d9c1f3a-52b1-4c0e-9d8f-{digits}",
        "resourceVersion": str(VERSION - 10 * number - 1),
        "creationTimestamp": CREATED,
    }
    return document


def waiting_pod(name, uid, version):
    """A pod of one small container that waits, or waited."""
    document = pod(name, schedulerName="default-scheduler")
    document["metadata"] |= {"uid": uid, "resourceVersion": str(version), "creationTimestamp": CREATED}
    return document


class WrittenCluster:
    """Lists nodes and pods, takes bindings, and shows these to the pods' watch.

    `lists` has the documents by the plural of their kind.
    """

    def __init__(self, lists):
        self._pages = {plural: Pages(documents) for plural, documents in lists.items()}
        self._watches, self._version = [], VERSION
        self._tasks = set()

    @asynccontextmanager
    async def serving(self):
        """Serve on a port of this machine; gives the URL."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = LENGTH.search(head)
                body = await reader.readexactly(int(found[1])) if found else b""
                method, target, _ = head.split(b" ", 2)
                asked = urlsplit(target.decode())
                query = {name: values[0] for name, values in parse_qs(asked.query).items()}
                if "watch" in query:
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    self._watches += [writer] if asked.path == PODS else []
                    continue
                self._answer(writer, method, asked.path, query, body)
                await writer.drain()
        writer.transport.abort()

    def _answer(self, writer, method, path, query, body):
        status, answer = b"200 OK", NONE
        if method != b"GET":
            status, answer = b"201 Created", b"{}"
            if found := BINDING.match(path):
                self._bind(found[1], json.loads(body))
        elif listed := self._pages.get(path.rpartition("/")[2]):
            answer = listed.page(int(query.get("continue", 0)), int(query.get("limit", 0)))
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (status, len(answer)))
        writer.write(answer)

    def _bind(self, name, binding):
        self._version += 1
        document = waiting_pod(name, binding["metadata"]["uid"], self._version)
        document["spec"]["nodeName"] = binding["target"]["name"]
        event = json.dumps({"type": "MODIFIED", "object": document}).encode() + b"\n"
        for watch in self._watches:
            watch.write(b"%x\r\n%b\r\n" % (len(event), event))
