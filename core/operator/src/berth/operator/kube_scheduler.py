"""Whether kube-scheduler serves a profile beside a Scheduler: by its lease, which it renews while it leads.

Its file is not in the API; it serves `default-scheduler` unless it is configured otherwise.
"""

from datetime import datetime
from typing import Final

import msgspec

from berth.client.api import Api
from berth.client.errors import NotFoundError
from berth.client.resources import Resource
from berth.framework.clock import Clock
from berth.operator.errors import ServedTwiceError
from berth.operator.kinds import Json, SchedulerKey
from berth.operator.rendering.names import lease

_LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", namespaced=True)
_LEASE: Final = SchedulerKey("kube-system", "kube-scheduler")
_PROFILE: Final = "default-scheduler"


class KubeSchedulerLease:
    """What was seen of the lease: its holder counts until the lease did not move for its duration.

    Only at the first look the time that another machine wrote in it is compared with our wall clock.

    Source: the rules of client-go/tools/leaderelection (Kubernetes v1.36).
    """

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._seen: tuple[str, str] | None = None
        self._runs_out_at = 0.0

    async def check(self, scheduler: Json) -> None:
        """Let pass a Scheduler that shares no profile with a running kube-scheduler, or shares its lease.

        Raises: ServedTwiceError; ClientError where the lease cannot be read.
        """
        spec = scheduler["spec"]
        elects = (spec.get("leaderElection") or {}).get("leaderElect", True)
        shares = elects and lease(scheduler) == _LEASE
        profiles = [profile["schedulerName"] for profile in spec["profiles"]]
        if shares or _PROFILE not in profiles or not spec.get("replicas", 1):
            return
        try:
            found = msgspec.json.decode(await self._api.get(_LEASES, *_LEASE))
        except NotFoundError:
            return
        holder = self._holder(found.get("spec") or {})
        if holder:
            raise ServedTwiceError(
                f"profile {_PROFILE} is served by kube-scheduler, too: {holder} holds the lease "
                "kube-system/kube-scheduler; stop it, or share its lease, so that one leads at a time: set "
                "spec.leaderElection.resourceName to kube-scheduler and resourceNamespace to kube-system"
            )

    def _holder(self, spec: Json) -> str:
        """Give who holds a lease that has not run out."""
        holder, renewed = str(spec.get("holderIdentity") or ""), spec.get("renewTime")
        if not renewed or not holder:
            return ""
        now = self._clock.monotonic()
        if (holder, renewed) != self._seen:
            age = (
                self._clock.wall() - datetime.fromisoformat(renewed).timestamp()
                if self._seen is None
                else 0.0
            )
            self._seen = holder, renewed
            self._runs_out_at = now + spec.get("leaseDurationSeconds", 15) - max(0.0, age)
        return holder if now < self._runs_out_at else ""
