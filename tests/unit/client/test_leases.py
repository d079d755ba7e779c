"""At most one process believes that it leads, whatever stands still and whatever gets lost."""

import asyncio
import json
from contextlib import asynccontextmanager
from random import Random

import pytest

from berth.client.api import Api
from berth.client.errors import ConfigurationError, LeaseLostError
from berth.client.leases import TRIES_A_LINE, LeaderElector, LeaseSettings, LeaseSpread
from tests.failures.reporting import reports
from tests.unit.client.conftest import answer, eventually, raw_server, read_request, transport_to

PATH = b"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class LeaseServer:
    """One lease with optimistic concurrency; `answers` says what becomes of the next requests."""

    def __init__(self):
        self.lease, self.version, self.requests, self.answers = None, 0, [], []

    async def serve(self, reader, writer):
        while True:
            head, body = await read_request(reader)
            method, path = head.split()[:2]
            assert path.startswith(PATH)
            self.requests.append(method.decode())
            fate = self.answers.pop(0) if self.answers else "answer"
            if fate == "down":
                return
            reply = answer(fate) if isinstance(fate, int) else self._apply(method, body)
            if fate == "lost":
                return
            if fate == "garbled":
                reply = answer(200, b"<html>")
            writer.write(reply)

    def _apply(self, method, body):
        if method == b"GET":
            return answer(200, json.dumps(self.lease).encode()) if self.lease else answer(404)
        sent = json.loads(body)
        current = self.lease["metadata"]["resourceVersion"] if self.lease else None
        if sent["metadata"].get("resourceVersion") != current:
            return answer(409)
        self.version += 1
        sent["metadata"]["resourceVersion"] = str(self.version)
        self.lease = sent
        return answer(200, json.dumps(sent).encode())

    def held_by(self, holder, duration=15):
        self.version += 1
        spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": f"t{self.version}"}
        self.lease = {
            "metadata": {"resourceVersion": str(self.version), "labels": {"keep": "me"}},
            "spec": {**spec, "strategy": "OldestEmulationVersion", "leaseTransitions": 4},
        }


@asynccontextmanager
async def served(scripted):
    """The server, with its address as `url`."""
    async with raw_server(scripted.serve) as address:
        scripted.url = address.url
        yield scripted


@pytest.fixture
async def server():
    async with served(LeaseServer()) as found:
        yield found


@pytest.fixture
async def elector(server, clock):
    said, troubles = [], []
    async with transport_to(server.url) as transport:
        elector = LeaderElector(
            Api(transport),
            LeaseSettings(),
            "me",
            announce=said.append,
            on_trouble=troubles.append,
            clock=clock,
            sleep=clock.sleep,
            rng=Random(1),
            may_hold=lambda: elector.works,
        )
        elector.said, elector.troubles, elector.works = said, troubles, True
        yield elector


async def test_first(server, elector):
    """Where there is no lease, it is created and held."""
    assert elector.is_fresh() is False
    await elector.acquire()

    assert elector.is_fresh() is True
    assert server.lease["spec"]["holderIdentity"] == "me"
    assert server.lease["spec"]["leaseDurationSeconds"] == 15
    assert elector.said == ["me became leader"]


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
async def test_a_step_of_the_clock_changes_no_term(step, server, elector, clock):
    """A clock that is set neither ends the leader's term nor another's, and makes none longer."""
    server.held_by("other")
    start = clock.monotonic()
    clock.ahead += step
    await elector.acquire()
    waited = clock.monotonic() - start
    clock.ahead -= step
    fresh = elector.is_fresh()
    clock.seconds += LeaseSettings().renew_deadline

    assert (pytest.approx(15), True, False) == (waited, fresh, elector.is_fresh())


async def test_waits_for_the_holder_to_expire(server, elector, clock):
    """A lease is taken over when it has not moved for its duration before our eyes, not earlier."""
    server.held_by("other")
    start = clock.monotonic()
    await elector.acquire()

    # The last look is the moment at which the lease runs out, not the next one that was due.
    assert clock.monotonic() - start == pytest.approx(15)
    assert all(2.0 <= pause <= 4.4 for pause in clock.slept[:-1])
    assert server.lease["spec"]["leaseTransitions"] == 5


@pytest.mark.parametrize("seed", range(20))
async def test_holder_killed(seed, server, elector, clock):
    """It costs the lease's duration since the last renewal, and up to one look more until that was seen."""
    chance = Random(seed)
    renewed, killed = clock.monotonic() - 2 * chance.random(), clock.monotonic() + 60 * chance.random()

    async def renewing(seconds):
        nonlocal renewed
        while renewed + 2 <= min(clock.monotonic() + seconds, killed):
            renewed += 2
            server.held_by("other")
        await clock.sleep(seconds)

    server.held_by("other")
    elector._sleep, elector._rng = renewing, chance
    await elector.acquire()

    assert 15 - 1e-6 <= clock.monotonic() - renewed <= 15 + 4.4


async def test_a_lease_that_can_not_be_written_for_long(server, elector, caplog):
    """Tries that fail alike are counted, reported once and logged now and then; a success ends that."""
    server.answers += ["down"] * (2 * TRIES_A_LINE + 1)
    await elector.acquire()

    lines = [line for line in caplog.messages if "lease not acquired or renewed" in line]
    assert (1, 3) == (len(elector.troubles), len(lines))
    assert f"tries={2 * TRIES_A_LINE} " in lines[-1]
    assert (0, "") == (elector.failures, elector.trouble)


async def test_unknown_fields_survive(server, elector):
    """What others wrote into the lease stays in it."""
    server.held_by("")
    await elector.acquire()

    assert server.lease["metadata"]["labels"] == {"keep": "me"}
    assert server.lease["spec"]["strategy"] == "OldestEmulationVersion"


async def test_holder_that_renews_is_left_alone(server, elector, clock):
    """As long as the holder renews, no candidate writes."""
    server.held_by("other")
    task = asyncio.create_task(elector.acquire())
    while clock.monotonic() < 1100:
        await asyncio.sleep(0)
        server.held_by("other")
    task.cancel()
    await asyncio.wait([task])

    assert set(server.requests) == {"GET"}


async def test_renewing_costs_one_request(server, elector, clock):
    """A holder renews every retry period, with one request."""
    await elector.acquire()
    server.requests.clear()
    task = asyncio.create_task(elector.hold())
    while clock.monotonic() < 1100:
        await asyncio.sleep(0)
        assert elector.is_fresh() is True
    task.cancel()
    await asyncio.wait([task])

    assert set(server.requests) == {"PUT"}


async def test_frozen_process(server, elector, clock):
    """A process that stood still is not fresh from its first moment on, and does not renew."""
    await elector.acquire()
    clock.seconds += 14
    server.requests.clear()

    assert elector.is_fresh() is False
    with pytest.raises(LeaseLostError):
        await elector.hold()
    assert server.requests == []


async def test_frozen_while_renewing(server, elector, clock):
    """A renewal counts from the moment it was sent: what a freeze uses up in between is gone."""
    await elector.acquire()
    apply = server._apply

    def freeze(method, body):
        clock.seconds += 11
        return apply(method, body)

    server._apply = freeze
    with pytest.raises(LeaseLostError):
        await elector.hold()
    assert elector.is_fresh() is False


async def test_server_gone(server, elector, clock):
    """A holder that can't renew stops in the renew deadline, before anybody may take over."""
    await elector.acquire()
    start = clock.monotonic()
    server.answers = ["down"] * 100
    with pytest.raises(LeaseLostError):
        await elector.hold()

    assert clock.monotonic() - start <= 12
    assert elector.said == ["me became leader", "me stopped leading"]


async def test_lost_answer(server, elector, clock):
    """A renewal whose answer got lost is found by reading, and leading goes on."""
    server.held_by("earlier", duration=1)
    await elector.acquire()
    server.answers = ["lost", "down"]
    task = asyncio.create_task(elector.hold())
    await eventually(lambda: clock.monotonic() >= 1100)
    assert elector.is_fresh() is True
    task.cancel()
    await asyncio.wait([task])


async def test_taken_by_another(server, elector, clock):
    """Finding another holder ends leading at once."""
    await elector.acquire()
    server.held_by("other")
    start = clock.monotonic()
    with pytest.raises(LeaseLostError):
        await elector.hold()

    assert clock.monotonic() - start <= 4
    assert elector.is_fresh() is False


async def test_release(server, elector):
    """An orderly end frees the lease for the next candidate."""
    await elector.acquire()
    await elector.release()

    assert server.lease["spec"]["holderIdentity"] == ""
    assert elector.is_fresh() is False
    assert elector.said[-1] == "me stopped leading"


async def test_release_after_a_renewal_that_was_cut_short(server, elector):
    """The lease is given back even if its version is not known at the moment."""
    await elector.acquire()
    server.answers = ["lost"]
    assert not await elector._try(5)
    await elector.release()

    assert "" == server.lease["spec"]["holderIdentity"]


async def test_release_of_a_stale_lease(server, elector, clock):
    """A lease that ran out may have another holder: it is not touched."""
    await elector.acquire()
    clock.seconds += 60
    server.requests.clear()
    await elector.release()

    assert server.requests == []


async def test_race(server, clock):
    """Of two candidates for one free lease, one wins."""
    async with transport_to(server.url) as first, transport_to(server.url) as second:
        electors = [
            LeaderElector(Api(transport), LeaseSettings(), name, clock=clock)
            for name, transport in (("a", first), ("b", second))
        ]
        won = await asyncio.gather(*(elector._try(5) for elector in electors))

    assert sorted(won) == [False, True]


async def test_health(elector, clock):
    """Health fails only when the lease ran out long ago and we still think that we lead."""
    before = elector.is_healthy()
    await elector.acquire()
    clock.seconds += 34
    late = elector.is_healthy()
    clock.seconds += 2

    assert (before, late, elector.is_healthy()) == (True, True, False)


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        ({"duration": 10.0}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": 9.0}, r"renewDeadline must be greater than retryPeriod\*JitterFactor"),
    ],
)
def test_settings(times, problem):
    """Times that contradict each other are refused."""
    with pytest.raises(ConfigurationError, match=f"couldn't create leader elector: {problem}"):
        LeaseSettings(**times)


async def test_a_process_that_does_not_work_takes_no_lease(server, elector, clock):
    """It asks for nothing until it works again."""
    elector.works = False
    campaign = asyncio.create_task(elector.acquire())
    await eventually(lambda: len(clock.slept) > 3)
    idle = list(server.requests)
    elector.works = True
    await campaign

    assert [] == idle
    assert elector.is_fresh()


async def test_a_process_that_ceases_to_work_loses_its_lease(server, elector, clock):
    """It renews no more, and knows that it leads no longer before another may take the lease."""
    await elector.acquire()
    renewed, start = list(server.requests), clock.monotonic()
    elector.works = False

    with pytest.raises(LeaseLostError):
        await elector.hold()
    assert renewed == server.requests
    assert elector.settings.renew_deadline <= clock.monotonic() - start < elector.settings.duration
    assert not elector.is_fresh()


async def test_a_process_that_works_again_in_time_keeps_its_lease(server, elector, clock):
    """A renewal that was left out is made up for within the renew deadline."""
    await elector.acquire()
    elector.works = False
    holding = asyncio.create_task(elector.hold())
    await eventually(lambda: len(clock.slept) > 2)
    elector.works = True
    await eventually(lambda: "PUT" in server.requests)
    holding.cancel()

    assert elector.is_fresh()


def named(url, name, identity, spread, clock):
    """An elector of that process for that lease, on a transport that the caller opened."""
    return LeaderElector(
        Api(url),
        LeaseSettings(name=name),
        identity,
        clock=clock,
        sleep=clock.sleep,
        rng=Random(1),
        spread=spread,
    )


class LeaseServers(LeaseServer):
    """A lease by name."""

    def __init__(self):
        super().__init__()
        self.leases = {}

    def _apply(self, method, body):
        self.lease = self.leases.get(self.name)
        reply = super()._apply(method, body)
        self.leases[self.name] = self.lease
        return reply

    async def serve(self, reader, writer):
        while True:
            head, body = await read_request(reader)
            method, path = head.split()[:2]
            sent = json.loads(body)["metadata"]["name"] if body else path.decode().rpartition("/")[2]
            self.name = sent
            self.requests.append(method.decode())
            writer.write(self._apply(method, body))


@pytest.fixture
async def leases():
    async with served(LeaseServers()) as found:
        yield found


def holders(leases):
    return {name: lease["spec"]["holderIdentity"] for name, lease in leases.leases.items()}


async def test_a_process_that_leads_leaves_a_free_lease_to_others(leases, clock):
    """For as long as they may pause, for each lease that it holds; then it takes that one, too."""
    async with transport_to(leases.url) as transport:
        spread = LeaseSpread()
        first, second, third = (named(transport, name, "me", spread, clock) for name in "abc")
        start, taken = clock.monotonic(), []
        for elector in (first, second, third):
            await elector.acquire()
            taken.append(clock.monotonic() - start)

    assert [0, 4.4, 13.2] == [pytest.approx(seconds) for seconds in taken]
    assert {"a": "me", "b": "me", "c": "me"} == holders(leases)


async def test_two_processes_that_start_together_lead_a_shard_each(leases, clock):
    async with transport_to(leases.url) as transport:
        electors = {}
        for process in ("one", "two"):
            spread = LeaseSpread()
            electors |= {(process, name): named(transport, name, process, spread, clock) for name in "ab"}
        campaigns = [asyncio.create_task(elector._won()) for elector in electors.values()]
        won = dict(zip(electors, await asyncio.gather(*campaigns), strict=True))

    assert {"one", "two"} == set(holders(leases).values())
    assert 2 == sum(won.values())


async def test_a_process_that_leads_takes_over_what_runs_out(leases, clock):
    """A look of others later than a process that leads nothing."""
    async with transport_to(leases.url) as transport:
        spread = LeaseSpread()
        first, second = (named(transport, name, "me", spread, clock) for name in "ab")
        await first.acquire()
        leases.leases["b"] = {
            "metadata": {"name": "b", "resourceVersion": "0"},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "t"},
        }
        start = clock.monotonic()
        await second.acquire()

    assert clock.monotonic() - start == pytest.approx(19.4)


async def test_a_lease_that_is_held_is_renewed_without_waiting_for_campaigns(leases, clock):
    """Renewals do not stand behind tries for other leases."""
    async with transport_to(leases.url) as transport:
        spread = LeaseSpread()
        first, _ = (named(transport, name, "me", spread, clock) for name in "ab")
        await first.acquire()
        async with spread.trying:
            renewed = await first._try(5.0)

    assert renewed


async def test_margin(elector, clock):
    """The time left to renew falls from 1 to 0 over the renew deadline; it is 0 without the lease."""
    before = elector.margin()
    await elector.acquire()
    margins = [elector.margin()]
    for _ in range(2):
        await clock.sleep(elector.settings.renew_deadline / 2)
        margins.append(elector.margin())

    assert (0.0, [1.0, 0.5, 0.0]) == (before, margins)


@reports(
    "lease-not-released",
    log="`lease not released, it will run out`, with the cause; no warning where rights are gone",
)
@pytest.mark.parametrize(
    ("status", "level"),
    [
        pytest.param(403, "INFO", id="rights are gone, as at an uninstall"),
        pytest.param(500, "WARNING", id="a server that breaks"),
    ],
)
async def test_a_lease_that_is_not_released(server, elector, caplog, status, level):
    """What keeps it from being released is a warning, unless the process has no rights any more."""
    caplog.set_level("INFO", logger="berth.client")
    await elector.acquire()
    server.answers = [status]
    await elector.release()

    said = [one for one in caplog.records if "lease not released, it will run out err=" in one.getMessage()]
    assert [level] == [one.levelname for one in said]


@reports("lease-unreadable", log="`lease written, the answer is unreadable`, with the cause; it is held")
async def test_a_written_lease_whose_answer_is_unreadable(server, elector, caplog):
    """What was written holds; the next renewal reads the lease first."""
    server.answers = ["answer", "garbled"]
    await elector.acquire()

    assert elector.is_fresh()
    assert 1 == caplog.text.count("lease written, the answer is unreadable err=")
    assert await elector._try(5)
