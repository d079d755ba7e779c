"""What kube-scheduler writes into its log about each attempt at a pod: scores by plugin and node."""

import re
from dataclasses import dataclass, field

FLAGS = ("-v=3", "--vmodule=schedule_one=10,batch=10")
_LINE = re.compile(
    r'"(?P<what>Attempting to schedule pod|Plugin scored node for pod|Calculated node\'s final score for pod'
    r'|OpportunisticBatch provides node hint)" pod="(?P<pod>[^"]+)"'
    r'(?: plugin="(?P<plugin>\w+)")?(?: node="(?P<node>[^"]+)" score=(?P<score>-?\d+))?'
)


@dataclass
class Scored:
    """One attempt: each plugin's weighted score of each node, and their sums; empty where one node fits."""

    parts: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    hinted: bool = False


class SchedulerLog:
    """The log, read as far as it has been written."""

    def __init__(self, path):
        self._file = path.open(encoding="utf-8")
        self._rest = ""
        self._attempts = {}

    def attempts(self, pod):
        """The attempts at the pod of that namespace and name so far."""
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        for found in filter(None, map(_LINE.search, lines)):
            self._take(**found.groupdict())
        return self._attempts.get(pod, [])

    def close(self):
        """Read no further."""
        self._file.close()

    def _take(self, what, pod, plugin, node, score):
        if what.startswith("Attempting"):
            self._attempts.setdefault(pod, []).append(Scored())
            return
        attempt = self._attempts[pod][-1]
        if what.startswith("Opportunistic"):
            attempt.hinted = True
        elif plugin:
            attempt.parts.setdefault(plugin, {})[node] = int(score)
        else:
            attempt.totals[node] = int(score)
