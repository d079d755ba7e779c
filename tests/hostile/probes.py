"""What other users and the kubelet notice of a scheduler while a row is played."""

import asyncio
import http.client
import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from berth.client.errors import ClientError
from berth.client.resources import LEASES
from tests.hostile.arena import LOOPBACK, anything

LIVEZ_EVERY_SECONDS, LIVEZ_TIMEOUT_SECONDS = 0.5, 1.0
LEASE_EVERY_SECONDS, MEMORY_EVERY_SECONDS = 0.25, 0.25
LEASE = ("kube-system", "kube-scheduler")


@dataclass
class Gaps:
    """The longest time between two moments at which something happened, the ends of the window included."""

    last: float = field(default_factory=time.monotonic)
    longest: float = 0.0

    def note(self):
        """It happened now."""
        now = time.monotonic()
        self.longest, self.last = max(self.longest, now - self.last), now

    def up_to_now(self):
        """The longest gap, that since the last moment included."""
        return max(self.longest, time.monotonic() - self.last)


class Health(threading.Thread):
    """Asks /livez as a kubelet does, over a new connection each time, in a thread of its own."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.gaps, self.ended = port, Gaps(), threading.Event()

    def run(self):
        while not self.ended.wait(LIVEZ_EVERY_SECONDS):
            with suppress(OSError, http.client.HTTPException):
                asked = http.client.HTTPSConnection(
                    LOOPBACK, self.port, timeout=LIVEZ_TIMEOUT_SECONDS, context=anything()
                )
                try:
                    asked.request("GET", "/livez")
                    if asked.getresponse().status == http.HTTPStatus.OK:
                        self.gaps.note()
                finally:
                    asked.close()


class Probes:
    """All that is measured, from `watch` until it is cancelled."""

    def __init__(self, arena):
        self.arena = arena
        self.health = Health(arena.surface.port)
        self.lease, self.bindings, self.api = Gaps(), Gaps(), Gaps()
        self.submitted, self.bound = {}, set()
        self.slowest = 0.0
        self.holders = set()
        self.mebibytes_before = resident_mebibytes(arena.scheduler.pid)
        self.mebibytes_peak = 0.0
        self.log_before = arena.log_bytes

    async def watch(self):
        """Measure until cancelled."""
        self.health.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._lease())
                group.create_task(self._pods())
                group.create_task(self._memory())
        finally:
            self.health.ended.set()

    async def _lease(self):
        """The API server's own pauses are measured with the same requests."""
        seen = None
        while True:
            with suppress(ClientError):
                lease = json.loads(await self.arena.api.get(LEASES, *LEASE))
                self.api.note()
                renewed = lease["spec"].get("renewTime")
                if renewed != seen:
                    self.lease.note()
                seen = renewed
                self.holders |= {lease["spec"].get("holderIdentity")} - {None, ""}
            await asyncio.sleep(LEASE_EVERY_SECONDS)

    async def _pods(self):
        async for name, on in self.arena.ordinary_events():
            now = time.monotonic()
            came = self.submitted.setdefault(name, now)
            if on and name not in self.bound:
                self.bound.add(name)
                self.slowest = max(self.slowest, now - self._from(came))
                self.bindings.note()

    @property
    def longest_wait(self):
        """How long a pod has waited for a scheduler at most, those that are not bound yet included.

        One that came while a row had the scheduler started again waits from that scheduler's start.
        """
        waiting = [came for name, came in self.submitted.items() if name not in self.bound]
        return max([self.slowest, *(time.monotonic() - self._from(came) for came in waiting)])

    def _from(self, came):
        return max(came, self.arena.started)

    async def _memory(self):
        while True:
            self.mebibytes_peak = max(self.mebibytes_peak, resident_mebibytes(self.arena.scheduler.pid))
            await asyncio.sleep(MEMORY_EVERY_SECONDS)


def resident_mebibytes(pid):
    """The memory that a process has, 0 where it has ended."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        lines = (line.split() for line in status.splitlines() if line.startswith("VmRSS"))
        return next((int(words[1]) / 1024 for words in lines), 0.0)
    return 0.0
