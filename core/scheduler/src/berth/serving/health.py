"""Health checks as kube-scheduler's endpoints show them.

A check answers with the reason why it fails, or with nothing. The reason is withheld from the list of checks
and given only where one check is asked for by name. A note says how things are and is shown in both.

Source: apiserver pkg/server/healthz/healthz.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

Check = Callable[[], str]


def ping() -> str:
    """The check of a process that has no other: it answers, so it lives."""
    return ""


class NotedCheck(msgspec.Struct, frozen=True):
    """A check with a note, which is no secret and is shown whatever the check answers."""

    check: Check
    note: Callable[[], str]

    def __call__(self) -> str:
        """The reason why the check fails."""
        return self.check()


class HealthReport(NamedTuple):
    """Whether all is well, and what to answer."""

    healthy: bool
    text: str


class HealthChecks:
    """The checks behind one path: `name` is `healthz`, `livez` or `readyz`."""

    def __init__(self, name: str, checks: Mapping[str, Check]) -> None:
        self._name = name
        self._checks = dict(checks)
        self._counts: Counter[tuple[str, str]] = Counter()

    def report(self, *, excluded: Collection[str] = (), verbose: bool = False) -> HealthReport:
        """All checks but the excluded; each one has its line where one fails or `verbose` asks for them."""
        lines, healthy = [], True
        for name in self._checks:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif self._reason(name):
                lines.append(f"[-]{name} failed: reason withheld{self._noted(name)}")
                healthy = False
            else:
                lines.append(f"[+]{name} ok{self._noted(name)}")
        if unknown := sorted(set(excluded) - self._checks.keys()):
            quoted = ", ".join(f'"{each}"' for each in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        if healthy and not verbose:
            return HealthReport(True, "ok")
        lines.append(f"{self._name} check {'passed' if healthy else 'failed'}")
        return HealthReport(healthy, "".join(f"{line}\n" for line in lines))

    def single(self, name: str) -> HealthReport | None:
        """One check with its reason; None where there is no such check."""
        if name not in self._checks:
            return None
        reason = self._reason(name)
        return HealthReport(
            not reason, f"internal server error: {reason}\n" if reason else f"ok{self._noted(name)}"
        )

    def outcomes(self) -> list[str]:
        """The lines of `/metrics/slis` that say what each check answers now."""
        outcomes = {name: not self._reason(name) for name in self._checks}
        return [
            f'kubernetes_healthcheck{{name="{name}",type="{self._name}"}} {ok:d}'
            for name, ok in outcomes.items()
        ]

    def counts(self) -> list[str]:
        """The lines of `/metrics/slis` that say how often a check gave each answer."""
        return [
            f'kubernetes_healthchecks_total{{name="{name}",type="{self._name}",status="{status}"}} {count}'
            for (name, status), count in sorted(self._counts.items())
        ]

    def _noted(self, name: str) -> str:
        check = self._checks[name]
        return f": {check.note()}" if isinstance(check, NotedCheck) else ""

    def _reason(self, name: str) -> str:
        reason = self._checks[name]()
        self._counts[name, "error" if reason else "success"] += 1
        return reason
