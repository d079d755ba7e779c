"""What goes wrong between a client and its API server: rules that pick requests, and what becomes of these.

Used by: fault_proxy, the process; faults.py writes the rules.
"""

import re
from dataclasses import dataclass
from enum import Enum

# The test's own listener: nothing goes wrong there.
DIRECT = "direct"


class Fault(Enum):
    """What becomes of a request."""

    STATUS_BEFORE = "status before"  # answered with an error, never forwarded
    STATUS_AFTER = "status after"  # forwarded, and its answer replaced by an error
    CUT_BEFORE = "cut before"  # the connection ends, nothing was forwarded
    CUT_AFTER = "cut after"  # forwarded, the connection ends instead of an answer
    HANG_BEFORE = "hang before"  # neither forwarded nor answered
    HANG_AFTER = "hang after"  # forwarded, never answered
    LATE = "late"  # forwarded after so many seconds, even if the client has left by then
    HOLD = "hold"  # kept until the test lets it go or drops it
    SLOW_WATCH = "slow watch"  # every event so many seconds late
    CUT_WATCH = "cut watch"  # the stream ends after some events, perhaps inside one
    EXPIRE_WATCH = "expire watch"  # the stream ends with an ERROR event, 410, after some events


WATCH_FAULTS = frozenset({Fault.SLOW_WATCH, Fault.CUT_WATCH, Fault.EXPIRE_WATCH})
UNFORWARDED = frozenset({Fault.STATUS_BEFORE, Fault.CUT_BEFORE, Fault.HANG_BEFORE})


@dataclass
class Rule:
    """Which requests, how many of them, and their fate.

    `via` names the listener, empty for any; `method` and `path` are patterns that match from the start, the
    path with its query. The first `skip` matches go untouched, `times` are struck (-1: all), each with
    probability `rate`. For watches, `events` is the most events that pass before the end.
    """

    fault: Fault
    via: str = ""
    method: str = ""
    path: str = ""
    rate: float = 1.0
    skip: int = 0
    times: int = -1
    status: int = 500
    seconds: float = 0.0
    events: int = 10

    def strikes(self, via, method, path, chance):
        """Whether this request meets the fault; counts it."""
        if self.times == 0 or via == DIRECT or self.via not in ("", via):
            return False
        if not re.match(self.method, method) or not re.match(self.path, path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if chance.random() >= self.rate:
            return False
        self.times -= self.times > 0
        return True


def read_rule(document):
    """The rule that a JSON object describes."""
    return Rule(**{**document, "fault": Fault(document["fault"])})


REASONS = {
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status_object(code):
    """A Status as the API server words it."""
    reason = REASONS.get(code, "InternalError")
    message = f"injected by the fault proxy: {reason}"
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
