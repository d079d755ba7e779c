"""A process between API clients and their server that makes things go wrong: `-m tests.e2e.fault_proxy`.

    client ── listener (a name, a port) ── rule? ── upstream connection of its own ── API server

Clients speak plain HTTP to it; towards the server it has the TLS and the token of the server's kubeconfig.
Prints its control port. There, a line of JSON is a command and a line of JSON its answer: see `Control`.
Every request is logged with what became of it, so that a test can count what a client sent and what arrived.
"""

import asyncio
import contextlib
import json
import random
import sys
import time

from berth.client.authentication.credentials import load_endpoint
from tests.e2e.fault_rules import UNFORWARDED, WATCH_FAULTS, Fault, read_rule, status_object

LOOPBACK = "127.0.0.1"
LIMIT = 1 << 26


class Cut(Exception):  # noqa: N818 - a fate, not an error
    """The client's connection ends now."""


class Proxy:
    """The listeners, the rules, and the log."""

    def __init__(self, seed):
        self.server, self.rules, self.log, self.listeners = None, [], [], {}
        self.chance = random.Random(seed)
        self.clients = set()
        self.held = {}

    async def listen(self, name, user):
        """A port for the client of that name, in whose requests the server sees that user."""

        async def serve(reader, writer):
            client = Client(self, name, reader, writer, user)
            self.clients.add(client)
            try:
                await client.serve()
            finally:
                self.clients.discard(client)
                client.close()

        self.listeners[name] = await asyncio.start_server(serve, LOOPBACK, 0, limit=LIMIT)
        return self.listeners[name].sockets[0].getsockname()[1]

    def fate(self, entry):
        """The first rule that strikes."""
        for rule in self.rules:
            if rule.strikes(entry["via"], entry["method"], entry["path"], self.chance):
                entry["fault"] = rule.fault.value
                return rule
        return None

    def note(self, via, head):
        """A log entry for a request."""
        method, path = head.split(b" ", 2)[:2]
        entry = {
            "number": len(self.log),
            "at": time.monotonic(),
            "via": via,
            "method": method.decode(),
            "path": path.decode(),
            "fault": "",
            "forwarded": False,
            "status": 0,
        }
        self.log.append(entry)
        return entry


class Server:
    """The API server that a kubeconfig names."""

    def __init__(self, kubeconfig):
        self._endpoint = load_endpoint(kubeconfig=kubeconfig, environ={})
        token = self._endpoint.authorization.current()
        self._header = f"Authorization: {token}\r\n".encode() if token else b""

    async def connect(self):
        """A connection to it."""
        address, tls = self._endpoint.address, self._endpoint.ssl_context
        return await asyncio.open_connection(address.host, address.port, ssl=tls, limit=LIMIT)

    def authorized(self, request, user):
        """The request in the name of the kubeconfig's user, who may impersonate another one."""
        line, rest = request.split(b"\r\n", 1)
        impersonated = f"Impersonate-User: {user}\r\n".encode() if user else b""
        return b"%s\r\n%s%s%s" % (line, self._header, impersonated, rest)


class Client:
    """One client's connection, and the connection to the server that stands for it."""

    def __init__(self, proxy, via, reader, writer, user):
        self.proxy, self.via, self.reader, self.writer, self._user = proxy, via, reader, writer, user
        self.upstream = None

    async def serve(self):
        """Pass requests on, one after the other, until a side leaves."""
        with contextlib.suppress(OSError, EOFError, Cut):
            while True:
                head, body = await read_message(self.reader)
                entry = self.proxy.note(self.via, head)
                await self._exchange(head + body, entry, self.proxy.fate(entry))

    def close(self):
        """End both connections at once."""
        for writer in (self.writer, self.upstream and self.upstream[1]):
            if writer:
                writer.transport.abort()

    async def _exchange(self, request, entry, rule):
        fault = rule.fault if rule else None
        if fault is Fault.HOLD:
            await self._hold(entry)
        elif fault is Fault.LATE:
            await asyncio.sleep(rule.seconds)
        elif fault in UNFORWARDED:
            await self._refuse(rule, entry)
            return
        head = await self._forward(request, entry)
        if "watch=true" in entry["path"] and is_chunked(head):
            self.writer.write(head)
            await self._relay_watch(rule if fault in WATCH_FAULTS else None)
            return
        body = await read_body(self.upstream[0], head)
        if fault is Fault.CUT_AFTER:
            raise Cut
        if fault is Fault.HANG_AFTER:
            await self._hang()
        if fault is Fault.STATUS_AFTER:
            head, body = error_answer(rule.status)
        self.writer.write(head + body)
        await self.writer.drain()

    async def _forward(self, request, entry):
        """Send it to the server, and wait for the head of the answer."""
        if self.upstream is None:
            self.upstream = await self.proxy.server.connect()
        reader, writer = self.upstream
        writer.write(self.proxy.server.authorized(request, self._user))
        entry["forwarded"] = True
        head = await reader.readuntil(b"\r\n\r\n")
        entry["status"] = int(head.split(b" ", 2)[1])
        return head

    async def _refuse(self, rule, entry):
        if rule.fault is Fault.CUT_BEFORE:
            raise Cut
        if rule.fault is Fault.HANG_BEFORE:
            await self._hang()
        entry["status"] = rule.status
        head, body = error_answer(rule.status)
        self.writer.write(head + body)
        await self.writer.drain()

    async def _hang(self):
        """Wait until the client gives up."""
        await self.reader.read()
        raise Cut

    async def _hold(self, entry):
        verdict = self.proxy.held[entry["number"]] = asyncio.get_running_loop().create_future()
        try:
            if not await verdict:
                raise Cut
        finally:
            del self.proxy.held[entry["number"]]

    async def _relay_watch(self, rule):
        """Pass events on, each at its time, until either side leaves."""
        work = [
            asyncio.ensure_future(self._relay_events(rule)),
            asyncio.ensure_future(self.reader.read()),
        ]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        raise Cut

    async def _relay_events(self, rule):
        loop = asyncio.get_running_loop()
        waiting = asyncio.Queue()
        delay = rule.seconds if rule and rule.fault is Fault.SLOW_WATCH else 0.0
        sender = asyncio.ensure_future(self._send_when_due(waiting))
        ends = rule is not None and rule.fault is not Fault.SLOW_WATCH
        left = self.proxy.chance.randint(0, rule.events) if ends else -1
        try:
            async for chunk in chunks(self.upstream[0]):
                if left == 0:
                    chunk = self._last(rule, chunk)  # noqa: PLW2901 - what is left of it
                waiting.put_nowait((loop.time() + delay, chunk))
                if left == 0:
                    break
                left -= 1
            waiting.put_nowait((loop.time() + delay, None))
            await sender
        finally:
            sender.cancel()

    def _last(self, rule, chunk):
        if rule.fault is Fault.CUT_WATCH:
            return chunk[: self.proxy.chance.randrange(len(chunk))]
        line = json.dumps({"type": "ERROR", "object": status_object(410)}).encode() + b"\n"
        return b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line)

    async def _send_when_due(self, waiting):
        while True:
            due, chunk = await waiting.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if chunk is None:
                return
            self.writer.write(chunk)
            await self.writer.drain()


class Control:
    """The commands of a test; each is a method, its arguments the JSON object's other fields."""

    def __init__(self, proxy):
        self.proxy = proxy

    async def serve(self, reader, writer):
        """Obey, a line at a time."""
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                command = json.loads(line)
                answer = await getattr(self, command.pop("do"))(**command)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        writer.transport.abort()

    async def listen(self, name, user=""):
        """Give the client of that name a port; the server takes it for that user where one is named."""
        return await self.proxy.listen(name, user)

    async def target(self, kubeconfig):
        """Let the server be the one of that kubeconfig from now on; what runs to the old one is cut."""
        self.proxy.server = Server(kubeconfig)
        return await self.cut()

    async def rules(self, rules):
        """Let these rules hold instead of those before."""
        self.proxy.rules = [read_rule(rule) for rule in rules]

    async def log(self, since=0):
        """What was asked since that entry."""
        return self.proxy.log[since:]

    async def held(self):
        """The requests that are held."""
        return [self.proxy.log[number] for number in self.proxy.held]

    async def let_go(self, forward):
        """End the holding: pass the requests on, or cut their connections."""
        for verdict in self.proxy.held.values():
            verdict.set_result(forward)

    async def cut(self, via=""):
        """Cut every connection of that client, of all where none is named."""
        struck = [client for client in self.proxy.clients if via in ("", client.via)]
        for client in struck:
            client.close()
        return len(struck)


def header(head, name):
    """The value of a header in lower case, empty where there is none."""
    for line in head.lower().split(b"\r\n"):
        key, _, value = line.partition(b":")
        if key == name:
            return value.strip()
    return b""


async def read_message(reader):
    """The head and the body of a request."""
    head = await reader.readuntil(b"\r\n\r\n")
    return head, await read_body(reader, head)


def is_chunked(head):
    """Whether the body after this head comes in chunks."""
    return header(head, b"transfer-encoding") == b"chunked"


async def read_body(reader, head):
    """The body after this head, framing included."""
    if is_chunked(head):
        return b"".join([chunk async for chunk in chunks(reader)])
    return await reader.readexactly(int(header(head, b"content-length") or 0))


async def chunks(reader):
    """The chunks of a body, framing included; the last one ends it."""
    while True:
        size = await reader.readline()
        if not size:
            return
        whole = size + await reader.readexactly(int(size, 16) + 2)
        yield whole
        if int(size, 16) == 0:
            return


def error_answer(code):
    """Head and body of an error."""
    body = json.dumps(status_object(code)).encode()
    head = (
        f"HTTP/1.1 {code} Injected\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode(), body


async def main(seed):
    """Serve until the process ends."""
    server = await asyncio.start_server(Control(Proxy(seed)).serve, LOOPBACK, 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
