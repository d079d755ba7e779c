"""What our own pod shows of its leases: `berth.dev/Leading`, and why this process does not lead.

leads --> Leading   another does --> Standby   a lease can't be written --> LeaseNotAcquired, LeaseNotRenewed
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from berth.framework.clock import Clock
from berth.scheduler.leading.campaign import Campaign
from berth.scheduler.writing.own_pod_conditions import Json

LEADING = "berth.dev/Leading"
MESSAGE_LENGTH = 1024


class LeaseCondition:
    """The condition of a process that campaigns; none without an election."""

    def __init__(self, campaigns: Mapping[str, Campaign], clock: Clock) -> None:
        self._campaigns = campaigns
        self._clock = clock
        self._status = ""
        self._since = ""

    def conditions(self) -> Iterator[Json]:
        """Give it as it is now."""
        if not self._campaigns:
            return
        status, reason, message = self._now()
        if status != self._status:
            now = datetime.fromtimestamp(self._clock.wall(), UTC)
            self._status, self._since = status, now.strftime("%Y-%m-%dT%H:%M:%SZ")
        yield {
            "type": LEADING,
            "status": status,
            "reason": reason,
            "message": message[:MESSAGE_LENGTH],
            "lastTransitionTime": self._since,
        }

    def _now(self) -> tuple[str, str, str]:
        every = tuple(self._campaigns.values())
        if troubles := [f"lease {each.settings.name}: {each.trouble}" for each in every if each.trouble]:
            leads = any(each.leading for each in every)
            return str(leads), "LeaseNotRenewed" if leads else "LeaseNotAcquired", "; ".join(troubles)
        if any(each.leading for each in every):
            return "True", "Leading", ""
        holders = dict.fromkeys(each.holder or "none yet" for each in every)
        return "False", "Standby", f"{', '.join(holders)} leads"
