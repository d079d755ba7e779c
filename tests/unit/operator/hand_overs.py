"""Whether Schedulers are led while their objects are edited: each ready replica campaigns for the lease.

With the scheduler's own elector and under the rights that the operator gave its service account. A replica
that is taken away gives the lease back, but for every third, which dies with it.
"""

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from berth.client import Api, load_endpoint
from berth.client.errors import LeaseLostError
from berth.client.leases import JITTER_FACTOR, LeaderElector, LeaseSettings
from berth.sandbox.access.identity import service_account
from tests.unit.client.conftest import transport_to

DURATION, DEADLINE, PERIOD = 2.0, 1.5, 0.2
HAND_OVER_SECONDS = DURATION + PERIOD * (1 + JITTER_FACTOR)
"""How long it takes until a lease that is not given back is a standby's."""
MAX_TRIES = int((DURATION + DEADLINE) / PERIOD)
"""How often a ready replica may try in vain for a lease that no other renews meanwhile."""
DIES = 3
HEADINGS = ("Scheduler", "no ready replica", "ready, no leader", "hand-over", "leaders", "most tries")


@dataclass
class Waiting:
    """How long a ready replica has seen no candidate renew the lease, itself included."""

    since: float = field(default_factory=time.monotonic)
    tries: int = 0


@dataclass
class Led:
    """What was seen of one Scheduler; times are shown, and what is counted is checked."""

    name: str
    electors: dict = field(default_factory=dict)
    waiting: dict = field(default_factory=dict)
    renewed: str = ""
    unready_since: float | None = None
    was_ready: bool = False
    times_unready: int = 0
    longest_unready: float = 0.0
    longest_wait: float = 0.0
    leaders: int = 0
    max_tries: int = 0
    at_once: list = field(default_factory=list)

    def count(self, ready):
        """So many replicas are ready."""
        now = time.monotonic()
        if ready:
            self.was_ready = True
            self.longest_unready = max(self.longest_unready, now - (self.unready_since or now))
            self.unready_since = None
        elif self.was_ready and self.unready_since is None:
            self.times_unready += 1
            self.unready_since = now

    def join(self, identity, elector):
        """A replica campaigns."""
        self.electors[identity], self.waiting[identity] = elector, Waiting()

    def leave(self, identity):
        """What is not there any more neither leads nor tries."""
        del self.electors[identity]
        self._waited(self.waiting.pop(identity))

    def renew(self, spec):
        """The lease is as it says; to give it back is not to renew it."""
        if spec.get("holderIdentity") and spec["renewTime"] != self.renewed:
            self.renewed = spec["renewTime"]
            for identity, one in self.waiting.items():
                self._waited(one)
                self.waiting[identity] = Waiting()

    def _waited(self, one):
        self.longest_wait = max(self.longest_wait, time.monotonic() - one.since)

    def tried(self, identity):
        """A replica that does not lead has tried."""
        self.waiting[identity].tries += 1
        self.max_tries = max(self.max_tries, self.waiting[identity].tries)

    def lead(self, identity):
        """A replica leads from now on: no other may still write."""
        self.leaders += 1
        self.at_once += [
            other for other, one in self.electors.items() if other != identity and one.is_fresh()
        ]

    def figures(self):
        """Give the numbers of its line of the table."""
        return self.longest_unready, self.longest_wait, HAND_OVER_SECONDS, self.leaders, self.max_tries


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
        """Raises: AssertionError where two led at once, or a ready replica did not get a free lease."""
        assert {} == {name: one.at_once for name, one in self.led.items() if one.at_once}
        assert {} == {name: one.max_tries for name, one in self.led.items() if one.max_tries > MAX_TRIES}

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

        elector = LeaderElector(self._clients[name], lease, pod, sleep=waits)
        led.join(pod, elector)
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
            led.leave(pod)


def is_ready(pod):
    """Say whether a pod serves, and is not about to end."""
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


@asynccontextmanager
async def hand_overs(work, folder, namespace, names):
    """Replicas of these Schedulers campaign until the block ends."""
    clients = {}
    async with AsyncExitStack() as stack:
        for name in names:
            kubeconfig = folder / f"of-{name}"
            kubeconfig.write_text(work.sandbox.kubeconfig_for(service_account(namespace, f"berth-{name}")))
            endpoint = load_endpoint(kubeconfig=str(kubeconfig), environ={})
            clients[name] = Api(await stack.enter_async_context(transport_to(endpoint)))
        yield await stack.enter_async_context(HandOvers(work, namespace, clients).seen())


def table(games):
    """Give, as text, the largest figures that each Scheduler had in some games."""
    lines = [HEADINGS]
    for name in games[0]:
        most = [max(figures) for figures in zip(*(game[name].figures() for game in games), strict=True)]
        lines.append((name, *(f"{one:.2f} s" if isinstance(one, float) else str(one) for one in most)))
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join("  ".join(map(str.ljust, line, widths)) for line in lines)
