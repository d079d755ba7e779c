"""How soon health is answered beside a busy loop, idle connections, scrapes, a slow reader and a profile.

A scheduler's two threads without the rest of it: one loop that burns Python as a scheduling loop does, and
the secure port in the control thread. Clients are in processes of their own. The same is measured for several
of the interpreter's switch intervals, with the work that the busy loop gets done beside it.
"""

import asyncio
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from threading import get_ident

from berth.sandbox.free_port import free_port
from berth.scheduler.loop.control_thread import ControlThread
from berth.scheduler.loop.event_loop import SWITCH_SECONDS
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.serving.access import allow_all
from berth.serving.endpoints import Endpoints, SecureServer
from berth.serving.health import NotedCheck
from berth.serving.listening import listen
from berth.serving.profiling import profiling_pages
from berth.serving.serving_certificate import SelfMade
from berth.telemetry.metrics.registry import SchedulerMetrics
from tests.benchmarks.tables import Table, quantiles

IDLE = 2_000
PROBES = 60
INTERVALS = (0.005, SWITCH_SECONDS, 0.0005)
LONG_TURN_SECONDS = 5.0
SERIES = 2_000
CLIENT = """
import asyncio, ssl, sys, time
context = ssl._create_unverified_context()
port, kind, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])

async def probe(path="/livez"):
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(f"GET {path} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    answer = await reader.read()
    writer.close()
    assert b" 200 OK" in answer, answer
    return time.perf_counter() - began

async def probes():
    for _ in range(count):
        print(await probe(), flush=True)
        await asyncio.sleep(0.02)

async def idle():
    held = []
    for i in range(count):
        tls = context if i % 10 == 0 else None
        try:
            pair = await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=("127.0.0.2", 0))
            held.append(pair)
            pair[1].write(b"GET /livez HTTP/1.1\\r\\n" if tls else b"")
        except OSError:
            pass
    print("held", flush=True)
    await asyncio.Event().wait()

async def slow():
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=1024)
    writer.write(b"GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    await reader.readline()
    print("held", flush=True)
    await asyncio.Event().wait()

async def scrapes():
    print("held", flush=True)
    while True:
        await probe("/metrics")

async def profile():
    print("held", flush=True)
    await probe("/debug/pprof/profile?seconds=60")

asyncio.run(globals()[kind]())
"""


def run(options):
    """One table; `--rounds` is the number of probes in each row."""
    probes = options.rounds or PROBES
    table = Table(
        f"seconds until /livez is answered, {probes} probes (goal: within 1)",
        ["scheduling loop, clients", "switch ms", "p50", "p90", "most", "thousand turns/s"],
    )
    hostile = {"idle": IDLE, "slow": 1, "profile": 1}
    for seconds in INTERVALS:
        sys.setswitchinterval(seconds)
        milliseconds = f"{seconds * 1e3:g}"
        for name, busy, clients in (
            ("idle, none", False, {}),
            ("busy, none", True, {}),
            ("busy, scraped without a pause", True, {"scrapes": 1}),
            (f"busy, {IDLE:,} idle, a slow reader, a profile", True, hostile),
        ):
            samples, work = asyncio.run(measured(probes, busy=busy, clients=clients))
            table.add(name, milliseconds, *quantiles(samples, 0.5, 0.9, 1.0), work)
    sys.setswitchinterval(SWITCH_SECONDS)
    samples, _ = asyncio.run(measured(probes, busy=False, clients={}, turn_seconds=LONG_TURN_SECONDS))
    table.add("one turn of 5 s", f"{SWITCH_SECONDS * 1e3:g}", *quantiles(samples, 0.5, 0.9, 1.0), "")
    table.show()


async def measured(probes, *, busy, clients, turn_seconds=0.0):
    """The probes' seconds, and how many thousand turns a second the busy loop had."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving())
        for kind, count in clients.items():
            client = stack.enter_context(Client(port, kind, count))
            await asyncio.to_thread(client.stdout.readline)
        prober = stack.enter_context(Client(port, "probes", probes))
        ended = asyncio.create_task(asyncio.to_thread(prober.communicate))
        began, turns = time.perf_counter(), 0
        if turn_seconds:
            burn(until=began + turn_seconds)
        while busy and not ended.done():
            for _ in range(100):
                burn()
            turns += 100
            await asyncio.sleep(0)
        out, _ = await ended
        seconds = time.perf_counter() - began
        assert prober.returncode == 0, "a probe failed"
    return [float(line) for line in out.split()], turns / seconds / 1e3 if busy else ""


def burn(until=0.0):
    """Work as Python does it: calls, numbers and small objects."""
    while True:
        sum(len(str(number)) for number in range(40))
        if time.perf_counter() >= until:
            return


@asynccontextmanager
async def serving():
    """The control thread beside this loop; its port."""
    port, metrics = free_port(), SchedulerMetrics()
    family = metrics.families.histograms["scheduler_plugin_execution_duration_seconds"]
    for number in range(SERIES):
        family.labels(f"plugin-{number}", "Filter", "Success").observe(0.1)
    turns = LoopTurns(asyncio.get_running_loop())
    turning = NotedCheck(turns.check, turns.note)

    async def reset():
        metrics.reset()

    endpoints = Endpoints(
        metrics.text,
        lambda: turns.ask(reset),
        dict,
        livez={"schedulingLoop": turning},
        pages=profiling_pages(asyncio.get_running_loop(), get_ident()),
    )
    async with ControlThread(turns) as control:
        server = await control.run(
            SecureServer.start(listen("127.0.0.1", port), SelfMade(), endpoints, review=allow_all)
        )
        try:
            yield port
        finally:
            await control.run(server.close())


class Client(subprocess.Popen):
    """A client in a process of its own, which ends with the block."""

    def __init__(self, port, kind, count):
        command = [sys.executable, "-c", CLIENT, str(port), kind, str(count)]
        super().__init__(command, stdout=subprocess.PIPE, text=True)

    def __exit__(self, *_):
        self.kill()
        self.wait()
        self.stdout.close()
