"""Whether Schedulers are led while their objects are edited: each ready replica campaigns, as its process would.

With the scheduler's own elector and under the rights that the operator gave its service account. A replica
that is taken away gives the lease back, but for every third, which dies with it.
"""

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from berth.client import Api, load_endpoint
from berth.client.errors import LeaseLostError
from berth.client.leases import JITTER_FACTOR, LeaderElector, LeaseSettings
from berth.sandbox.access.identity import service_account
from tests.unit.client.conftest import transport_to

DURATION, DEADLINE, PERIOD = 2.0, 1.5, 0.2
HAND_OVER_SECONDS = DURATION + PERIOD * (1 + JITTER_FACTOR)
"""How long it takes at most until a lease that is not given back is another's."""
MOST_TRIES = int((DURATION + DEADLINE) / PERIOD)
"""How often a ready replica may try in vain for a lease that no other renews meanwhile."""
DIES = 3
HEADINGS = ("Scheduler", "no ready replica", "no renewed lease", "hand-over", "leaders", "most tries")


@dataclass
class Gap:
    """The longest time between two of something."""

    began: float | None = None
    longest: float = 0.0

    def begin(self):
        """It is missing from now on, if it was there."""
        self.began = time.monotonic() if self.began is None else self.began

    def end(self):
        """It is there."""
        if self.began is not None:
            self.longest = max(self.longest, time.monotonic() - self.began)
        self.began = None


@dataclass
class Led:
    """What was seen of one Scheduler; times are shown, and counted are tries."""

    name: str
    unready: Gap = field(default_factory=Gap)
    unrenewed: Gap = field(default_factory=Gap)
    was_ready: bool = False
    times_unready: int = 0
    renewed: str = ""
    leaders: int = 0
    tries: dict = field(default_factory=dict)
    most_tries: int = 0
    electors: dict = field(default_factory=dict)
    at_once: list = field(default_factory=list)

    def count(self, ready):
        """So many replicas are ready."""
        if ready:
            self.was_ready = True
            self.unready.end()
        elif self.was_ready and self.unready.began is None:
            self.times_unready += 1
            self.unready.begin()

    def renew(self, spec):
        """The lease is as it says; one that was given back is renewed by nobody."""
        if spec.get("holderIdentity") and spec["renewTime"] != self.renewed:
            self.renewed = spec["renewTime"]
            self.unrenewed.end()
            self.unrenewed.begin()
            self.tries.clear()

    def tried(self, identity):
        """A replica that does not lead has tried."""
        self.tries[identity] = self.tries.get(identity, 0) + 1
        self.most_tries = max(self.most_tries, self.tries[identity])

    def lead(self, identity):
        """A replica leads from now on: no other may still write."""
        self.leaders += 1
        self.at_once += [other for other, one in self.electors.items() if other != identity and one.is_fresh()]

    def row(self):
        """Give a line of the table."""
        times = (self.unready.longest, self.unrenewed.longest, HAND_OVER_SECONDS)
        return (self.name, *(f"{one:.2f} s" for one in times), str(self.leaders), str(self.most_tries))


class HandOvers:
    """Campaigns for the ready replicas of some Schedulers."""

    def __init__(self, work, namespace, clients):
        self._work, self._namespace, self._clients = work, namespace, clients
        self.led = {name: Led(name) for name in clients}
        self._pods = work.sandbox.store.collection("pods")
        self._leases = work.sandbox.store.collection("leases.coordination.k8s.io")
        self._campaigns, self._ended = {}, 0
        self._ending = set()

    @asynccontextmanager
    async def seen(self):
        """Follow pods and leases until the block ends."""
        ends = [self._pods.subscribe(self._look_at_pods), self._leases.subscribe(self._look_at_leases)]
        try:
            yield self
        finally:
            for end in ends:
                end()
            tasks = [*self._campaigns.values(), *self._ending]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def check(self):
        """Raises: AssertionError where two led at once, or a ready replica did not get a lease that none held."""
        assert {} == {name: one.at_once for name, one in self.led.items() if one.at_once}
        assert {} == {name: one.most_tries for name, one in self.led.items() if one.most_tries > MOST_TRIES}

    def _look_at_leases(self):
        for entry in self._leases.entries():
            lease = entry.decode()
            name = lease["metadata"]["name"].removeprefix("berth-")
            if name in self.led:
                self.led[name].renew(lease["spec"])

    def _look_at_pods(self):
        ready = {name: set() for name in self.led}
        for entry in self._pods.entries():
            pod = entry.decode()
            name = pod["metadata"].get("labels", {}).get("berth.dev/scheduler")
            if name in ready and is_ready(pod):
                ready[name].add(pod["metadata"]["name"])
        for name, pods in ready.items():
            self.led[name].count(len(pods))
            for pod in pods - self._campaigns.keys():
                self._campaigns[pod] = asyncio.create_task(self._campaign(name, pod))
        for pod in self._campaigns.keys() - set().union(*ready.values()):
            self._end(pod)

    def _end(self, pod):
        task = self._campaigns.pop(pod)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        self._ended += 1
        task.cancel("killed" if self._ended % DIES == 0 else "ended")

    async def _campaign(self, name, pod):
        led = self.led[name]
        lease = LeaseSettings(self._namespace, f"berth-{name}", DURATION, DEADLINE, PERIOD)

        async def waits(seconds):
            if not elector.leading:
                led.tried(pod)
            await asyncio.sleep(seconds)

        elector = led.electors[pod] = LeaderElector(self._clients[name], lease, pod, sleep=waits)
        try:
            while True:
                await elector.acquire()
                led.lead(pod)
                try:
                    await elector.hold()
                except LeaseLostError:
                    continue
        except asyncio.CancelledError as error:
            if "killed" not in error.args:
                await elector.release()
        finally:
            # What is not there any more neither leads nor tries.
            led.electors.pop(pod)
            led.tries.pop(pod, None)


def is_ready(pod):
    """Say whether a pod serves, and is not about to end."""
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


@asynccontextmanager
async def hand_overs(work, folder, namespace, names, stack):
    """Replicas of these Schedulers campaign until the block ends."""
    clients = {}
    for name in names:
        kubeconfig = folder / f"of-{name}"
        kubeconfig.write_text(work.sandbox.kubeconfig_for(service_account(namespace, f"berth-{name}")))
        transport = await stack.enter_async_context(
            transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={}))
        )
        clients[name] = Api(transport)
    async with HandOvers(work, namespace, clients).seen() as found:
        yield found


def table(rows):
    """Give rows under their headings, as text."""
    lines = [HEADINGS, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)
