"""Whether kube-scheduler serves a profile beside a Scheduler: by its lease, which it renews while it leads.

Its file is not in the API; it serves `default-scheduler` unless it is configured otherwise.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from berth.client.api import Api
from berth.client.errors import NotFoundError
from berth.client.resources import Resource
from berth.framework.clock import SYSTEM_CLOCK
from berth.operator.errors import ServedTwiceError
from berth.operator.kinds import Json, Key
from berth.operator.rendering.names import lease

_LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", namespaced=True)
_LEASE: Final = Key("kube-system", "kube-scheduler")
_PROFILE: Final = "default-scheduler"


async def check_kube_scheduler(api: Api, scheduler: Json) -> None:
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
        found = msgspec.json.decode(await api.get(_LEASES, *_LEASE))
    except NotFoundError:
        return
    holder = _holder(found.get("spec") or {})
    if holder:
        raise ServedTwiceError(
            f"profile {_PROFILE} is served by kube-scheduler, too: {holder} holds the lease "
            "kube-system/kube-scheduler; stop it, or share its lease, so that one leads at a time: set "
            "spec.leaderElection.resourceName to kube-scheduler and resourceNamespace to kube-system"
        )


def _holder(spec: Json) -> str:
    """Give who holds a lease that has not run out."""
    renewed = spec.get("renewTime")
    if not renewed or not spec.get("holderIdentity"):
        return ""
    since = datetime.fromtimestamp(SYSTEM_CLOCK.now(), UTC) - datetime.fromisoformat(renewed)
    held = since < timedelta(seconds=spec.get("leaseDurationSeconds", 15))
    return str(spec["holderIdentity"]) if held else ""
