"""Leader election over a Lease, safe against a process that stood still.

    candidate ──► leading (fresh) ──► stale ──► lost: LeaseLostError, the process ends
                        │
                        └──► released, on an orderly end

`is_fresh()` answers from the monotonic clock alone and counts from the moment at which the last
successful renewal was *sent*: whatever froze since then, process or network, has used the time up.
It says no as soon as the renew deadline is over; others may not take the lease before its whole
duration is, so a write sent while fresh has the difference of the two to arrive.

The elector belongs to one event loop. `leading`, `is_fresh` and `is_healthy` may be read in any thread: each
is worked out from single values, of which `leading` is set last and `_renewed_at` only for what was written.

Called by: the scheduler process (acquire, hold, release); pods asks is_fresh before each write.
Source: the rules of client-go/tools/leaderelection (Kubernetes v1.36).
"""

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Mapping
from random import Random
from typing import Any
from uuid import uuid4

import msgspec

from berth.client.api import Api, Retry, never_landed
from berth.client.errors import (
    ClientError,
    ConfigurationError,
    ConflictError,
    LeaseLostError,
    NotFoundError,
    lacks_rights,
)
from berth.client.resources import LEASES
from berth.client.timing import Sleep, micro_time
from berth.client.wire import decode_document, encode
from berth.framework.clock import Clock, SystemClock
from berth.framework.pacing import Backoff

log = logging.getLogger(__name__)

JITTER_FACTOR = 1.2
TRIES_A_LINE = 30
"""Of tries that fail alike, one in so many has a line: by default one in two minutes."""
ONCE = Retry(1, Backoff(0.0), never_landed)
NEVER = -math.inf


class LeaseSettings(msgspec.Struct, frozen=True):
    """Which lease, and its times.

    Units: seconds.
    Raises: ConfigurationError when the times contradict each other.
    """

    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        problem = ""
        if self.duration <= self.renew_deadline:
            problem = "leaseDuration must be greater than renewDeadline"
        elif self.renew_deadline <= self.retry_period * JITTER_FACTOR:
            problem = "renewDeadline must be greater than retryPeriod*JitterFactor"
        if problem:
            raise ConfigurationError(
                "",
                "leaderElection",
                f"couldn't create leader elector: {problem}",
                "lengthen the one or shorten the other",
            )


def new_identity() -> str:
    """A name for this process that no other has: `<hostname>_<uuid>`."""
    return f"{socket.gethostname()}_{uuid4()}"


class LeaseSpread:
    """Divides leases among processes: one that leads some leaves a free lease to others for longer.

    The electors of a process share one and try in turn, so that each knows what the others hold.
    """

    def __init__(self) -> None:
        self.trying = asyncio.Lock()
        self._electors: list[LeaderElector] = []

    def join(self, elector: "LeaderElector") -> None:
        """Count an elector of this process."""
        self._electors.append(elector)

    def patience_seconds(self, elector: "LeaderElector") -> float:
        """How long it leaves a free lease to others: their longest pause for each that is led here."""
        led = sum(other.leading for other in self._electors if other is not elector)
        return led * elector.settings.retry_period * (1.0 + JITTER_FACTOR)


class LeaderElector:
    """Acquires, renews and releases one lease for one identity.

    `announce` is called with `<identity> became leader` and `<identity> stopped leading`.
    `on_trouble` is called with what keeps it from acquiring or renewing the lease, when that is new.
    While `may_hold` says no, nothing is written: the lease is neither taken nor renewed, and runs out.
    Where a process campaigns for several leases, `spread` is what its electors share. `annotations` are set
    on the lease whenever it is acquired or renewed.
    Give it a transport of its own: a renewal must not queue behind bindings.
    """

    def __init__(
        self,
        api: Api,
        settings: LeaseSettings,
        identity: str,
        *,
        announce: Callable[[str], None] = lambda _: None,
        on_trouble: Callable[[str], None] = lambda _: None,
        may_hold: Callable[[], bool] = lambda: True,
        spread: LeaseSpread | None = None,
        annotations: Callable[[], Mapping[str, str]] = dict,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        rng: Random | None = None,
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.leading = False
        self.failures = 0
        """How many tries in a row failed; that another process holds the lease is no failure."""
        self.trouble = ""
        """What the last of them failed for."""
        self._troubles: set[str] = set()
        self._api = api
        self._announce = announce
        self._on_trouble = on_trouble
        self._may_hold = may_hold
        self._annotations = annotations
        self._spread = spread or LeaseSpread()
        self._spread.join(self)
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._rng = rng or Random()
        self._renewed_at = NEVER
        self._lease: dict[str, Any] | None = None
        self._seen: tuple[Any, Any] | None = None
        self._seen_at = NEVER
        self._runs_out_at = NEVER

    def is_fresh(self) -> bool:
        """Whether this process can prove that it leads, now."""
        return self.leading and self._age() < self.settings.renew_deadline

    def margin(self) -> float:
        """How much of the time for renewing is left: 1 right after it was done, 0 where the holder must stop.

        0 also where it does not lead.
        """
        renewed_at = self._renewed_at
        if not self.leading or renewed_at == NEVER:
            return 0.0
        age = self._clock.monotonic() - renewed_at
        return max(0.0, 1.0 - age / self.settings.renew_deadline)

    def is_healthy(self, tolerance_seconds: float = 20.0) -> bool:
        """False when we lead on paper and the lease ran out longer ago than the tolerance."""
        return not self.leading or self._age() <= self.settings.duration + tolerance_seconds

    @property
    def holder(self) -> str:
        """Who holds the lease, as it was last seen; empty while that is not known, or there is no holder."""
        return str(self._seen[0]) if self._seen is not None else ""

    def is_held(self) -> bool:
        """Whether the lease is held by any process, kube-scheduler included, as it was last seen."""
        if self.leading:
            return self.is_fresh()
        return bool(self.holder) and self._clock.monotonic() < self._runs_out_at

    async def acquire(self) -> None:
        """Campaign until this process leads."""
        while not await self._won():
            await self._sleep(min(self._jittered_period(), self._runs_out_in()))
        log.info("became leader identity=%s lease=%s", self.identity, "/".join(self._names()))
        self._announce(f"{self.identity} became leader")

    async def hold(self) -> None:
        """Renew for as long as it works.

        Raises: LeaseLostError when it did not work in time, or another process holds the lease.
        """
        while True:
            await self._sleep(self.settings.retry_period)
            # Never renew a stale lease: another may have led, and written, in the meantime.
            left = self.settings.renew_deadline - self._age()
            if left <= 0:
                break
            if not await self._try(min(self._request_seconds(), left)) and self._held_by_other():
                break
        self._stop()
        raise LeaseLostError("Leaderelection lost")

    async def release(self) -> None:
        """Stop leading and let the next candidate in at once, if this process leads."""
        if not self.leading:
            return
        fresh, lease = self.is_fresh(), self._lease
        self._stop()
        if not fresh:
            return
        try:
            # After a renewal that was cut short the lease's version is not known.
            lease = lease or await self._read(self._request_seconds())
            if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self.identity:
                await self._write(self._filled(lease, holder="", duration=1.0), self._request_seconds())
        except (ClientError, msgspec.DecodeError) as error:
            # As when Berth is uninstalled: its roles go before its pods have ended.
            level = logging.INFO if lacks_rights(error) else logging.WARNING
            log.log(level, "lease not released, it will run out err=%s", error)

    def _stop(self) -> None:
        self.leading = False
        self._renewed_at = NEVER
        log.info("stopped leading identity=%s lease=%s", self.identity, "/".join(self._names()))
        self._announce(f"{self.identity} stopped leading")

    def _age(self) -> float:
        return self._clock.monotonic() - self._renewed_at

    def _jittered_period(self) -> float:
        return self.settings.retry_period * (1.0 + JITTER_FACTOR * self._rng.random())

    def _runs_out_in(self) -> float:
        """Seconds until the lease may be taken if it is not renewed; infinite when that time has come."""
        left = self._runs_out_at - self._clock.monotonic()
        return left if left > 0 else math.inf

    def _request_seconds(self) -> float:
        return max(self.settings.renew_deadline / 2, 1.0)

    def _names(self) -> tuple[str, str]:
        return self.settings.namespace, self.settings.name

    # One try.

    async def _won(self) -> bool:
        async with self._spread.trying:
            self.leading = await self._try(self._request_seconds())
        return self.leading

    async def _try(self, timeout_seconds: float) -> bool:
        """Create, renew or take over the lease; whether that is known to have worked."""
        if not self._may_hold():
            self._failed("this process does not do its work")
            return False
        started = self._clock.monotonic()
        try:
            written = await self._create_or_update(timeout_seconds)
        except ConflictError as error:
            self._lease = None
            log.info("another process wrote the lease first err=%s", error)
            return False
        except (ClientError, msgspec.DecodeError) as error:
            self._lease = None
            self._failed(str(error))
            return False
        self.failures, self.trouble = 0, ""
        self._troubles.clear()
        if written:
            self._renewed_at = started
            self._seen = (self.identity, None)
        return written

    def _failed(self, why: str) -> None:
        """Say what the try failed for: once, and again now and then."""
        self.failures, self.trouble = self.failures + 1, why
        if why in self._troubles and self.failures % TRIES_A_LINE:
            return
        log.warning("lease not acquired or renewed tries=%s err=%s", self.failures, why)
        if why not in self._troubles and len(self._troubles) < TRIES_A_LINE:
            self._troubles.add(why)
            self._on_trouble(why)

    async def _create_or_update(self, timeout_seconds: float) -> bool:
        lease = self._lease if self.leading and self._lease else await self._read(timeout_seconds)
        if not self._may_take(lease):
            return False
        duration = self.settings.duration
        await self._write(self._filled(lease, holder=self.identity, duration=duration), timeout_seconds)
        return True

    async def _read(self, timeout_seconds: float) -> dict[str, Any] | None:
        path = LEASES.path(*self._names())
        try:
            body = await self._api.call("GET", path, timeout_seconds=timeout_seconds, retry=ONCE)
        except NotFoundError:
            return None
        return decode_document(body)

    async def _write(self, lease: dict[str, Any], timeout_seconds: float) -> None:
        """Create or replace the lease; its resourceVersion makes that fail if anybody wrote since."""
        exists = "resourceVersion" in lease["metadata"]
        path = LEASES.path(*self._names()) if exists else LEASES.collection(self.settings.namespace)
        method = "PUT" if exists else "POST"
        self._lease = None
        body = await self._api.call(method, path, encode(lease), timeout_seconds=timeout_seconds, retry=ONCE)
        try:
            self._lease = decode_document(body)
        except msgspec.DecodeError as error:
            log.warning("lease written, the answer is unreadable err=%s", error)

    def _filled(self, lease: dict[str, Any] | None, *, holder: str, duration: float) -> dict[str, Any]:
        """The lease as we want it; what we know nothing of stays as it is."""
        now = micro_time(self._clock.wall())
        if lease is None:
            namespace, name = self._names()
            lease = {
                "apiVersion": LEASES.api_version,
                "kind": "Lease",
                "metadata": {"namespace": namespace, "name": name},
            }
        spec: dict[str, Any] = dict(lease.get("spec") or {})
        if spec.get("holderIdentity") != holder:
            spec["acquireTime"] = now
            if holder:
                spec["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + ("holderIdentity" in spec)
        spec["holderIdentity"] = holder
        spec["leaseDurationSeconds"] = max(1, math.ceil(duration))
        spec["renewTime"] = now
        said = {**(lease["metadata"].get("annotations") or {}), **(self._annotations() if holder else {})}
        metadata = lease["metadata"] | ({"annotations": said} if said else {})
        return lease | {"metadata": metadata, "spec": spec}

    def _may_take(self, lease: dict[str, Any] | None) -> bool:
        """Whether the lease is ours or free, or has not moved for its whole duration before our eyes.

        A process that holds other leases waits for longer (Spread). The times written in the lease are never
        compared with our clock: other machines wrote them.
        """
        spec: dict[str, Any] = (lease or {}).get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        seen = (holder, spec.get("renewTime"))
        now = self._clock.monotonic()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        self._runs_out_at = self._seen_at
        if holder not in {"", self.identity}:
            self._runs_out_at += spec.get("leaseDurationSeconds") or self.settings.duration
        if holder != self.identity and not self.leading:
            self._runs_out_at += self._spread.patience_seconds(self)
        return now >= self._runs_out_at

    def _held_by_other(self) -> bool:
        return self._seen is not None and self._seen[0] not in {"", self.identity}
