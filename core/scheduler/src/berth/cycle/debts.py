"""What namespaces owe for CPU that their pods used in cycles over budget, and how long they wait for it.

    charge --> owes, and pauses --+--> paid, after a hundred times the CPU
                                  +--> its causes are gone: lifted --> over budget again: owes the rest, too

A debt ends with the pods that caused it, so that others of the namespace do not pay for what is gone; a pod
is as good as gone with a claim that it names. That is done once: of a namespace that goes over again within
the time in which it would have paid, as one does that deletes its pod and makes it anew, the debt is paid to
the end.

    took_long --> yields: its pods go behind those of others that are ready, for ten times the CPU
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from berth.framework.clock import Clock

FOR_CPU = 100
"""A namespace owes so many times the CPU, in time."""
LONGEST_DEBT_SECONDS = 3600.0
MAX_DEBTORS = 1024
MAX_CAUSES = 64
"""A debt that more pods caused does not end with them."""
Causes = Mapping[str, AbstractSet[str]]
"""The UIDs of pods, and the claims that each of them names, as `namespace/name`."""
NO_CAUSES: Causes = {}
PLACED_PODS = ""
"""Stands among the causes for the affinity terms that placed pods of the namespace hold."""
PAUSE_FOR_CPU = 10
"""After a cycle over budget no pod of the namespace is tried for so many times the CPU that it used."""
LONGEST_PAUSE_SECONDS = 5.0
BETWEEN_TURNS_SECONDS = 0.01
"""Pods that had to wait come back no closer together, so that putting them off again costs little, too."""


class Debt(NamedTuple):
    """What a namespace owes. Units: monotonic seconds."""

    paid_at: float = 0.0
    paused_until: float = 0.0
    last_turn: float = 0.0
    """When the last of the pods that had to wait comes back."""
    causes: Causes = NO_CAUSES
    """The pods that went over budget."""
    would_be_paid_at: float = 0.0
    """The same as `paid_at`, of a debt that was lifted."""
    lasting: bool = False
    """Whether it is paid to the end, whatever becomes of its causes."""
    long_until: float = 0.0
    """How long it is known that a cycle was long."""

    @property
    def paying_until(self) -> float:
        """When it is paid, or would be."""
        return max(self.paid_at, self.would_be_paid_at)

    @property
    def known_until(self) -> float:
        """When there is nothing left to know of it."""
        return max(self.paying_until, self.long_until)


NOTHING = Debt()


class Debts:
    """The debts of namespaces, a bounded number of them. Units: seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_namespace: dict[str, Debt] = {}
        """What is known, by namespace."""
        self._busy: dict[str, float] = {}
        """Until when namespaces yield that had a long cycle."""
        self.of_placed_pods: set[str] = set()
        """Namespaces that owe something for the affinity terms that their placed pods hold."""

    def __len__(self) -> int:
        return len(self.by_namespace)

    def owed(self, namespace: str) -> float:
        """How long the namespace has still to pay."""
        debt, now = self.by_namespace.get(namespace), self._clock.monotonic()
        if debt is None:
            return 0.0
        if debt.known_until <= now:
            self._forget(namespace)
        return max(debt.paid_at - now, 0.0)

    def wait_seconds(self, namespace: str) -> float:
        """How much later a pod may be tried, because its namespace just went over budget; 0 for now."""
        debt, now = self.by_namespace.get(namespace), self._clock.monotonic()
        if debt is None or debt.paused_until <= now:
            return 0.0
        turn = max(debt.paused_until, debt.last_turn + BETWEEN_TURNS_SECONDS)
        self.by_namespace[namespace] = debt._replace(last_turn=turn)
        return turn - now

    def knows(self, namespace: str) -> bool:
        """Whether the namespace went over budget, or had a long cycle, not long ago."""
        debt = self.by_namespace.get(namespace)
        return debt is not None and debt.known_until > self._clock.monotonic()

    def yields(self, namespace: str) -> bool:
        """Whether others go first, because a cycle of the namespace was long a moment ago."""
        return bool(self._busy) and self._busy.get(namespace, 0.0) > self._clock.monotonic()

    def busy(self) -> int:
        """How many namespaces yield."""
        if not self._busy:
            return 0
        now = self._clock.monotonic()
        self._busy = {namespace: until for namespace, until in self._busy.items() if until > now}
        return len(self._busy)

    def took_long(self, namespace: str, used_seconds: float) -> None:
        """Have the namespace yield to others for ten times the CPU of a long cycle."""
        now, debt = self._clock.monotonic(), self.by_namespace.get(namespace, NOTHING)
        self._busy[namespace] = now + min(PAUSE_FOR_CPU * used_seconds, LONGEST_PAUSE_SECONDS)
        long_until = now + min(FOR_CPU * used_seconds, LONGEST_DEBT_SECONDS)
        self.by_namespace[namespace] = debt._replace(long_until=max(debt.long_until, long_until))
        self._bound()

    def charge(self, namespace: str, used_seconds: float, causes: Causes) -> None:
        """Have the namespace owe for CPU that was used because of these pods, or of `PLACED_PODS`.

        None are for pods that went over nothing but the small budget of a debtor: they cause no debt.
        """
        now, debt = self._clock.monotonic(), self.by_namespace.get(namespace, NOTHING)
        left = debt.paying_until - now
        if left <= 0:
            debt = NOTHING._replace(last_turn=debt.last_turn, long_until=debt.long_until)
        owed = min(max(left, 0.0) + FOR_CPU * used_seconds, LONGEST_DEBT_SECONDS)
        pause = min(PAUSE_FOR_CPU * used_seconds, LONGEST_PAUSE_SECONDS)
        known = {**debt.causes, **causes}
        lasting = debt.lasting or bool(debt.would_be_paid_at) or len(known) > MAX_CAUSES
        self.by_namespace[namespace] = Debt(
            now + owed,
            now + pause,
            debt.last_turn,
            NO_CAUSES if lasting else known,
            lasting=lasting,
            long_until=debt.long_until,
        )
        if PLACED_PODS in causes:
            self.of_placed_pods.add(namespace)
        self._bound()

    def cause_gone(self, namespace: str, cause: str) -> bool:
        """Take note that a cause of the debt is gone; answers whether the debt ended with it.

        No pod is tried any sooner after the cycle that went over budget.
        """
        debt = self.by_namespace.get(namespace)
        return debt is not None and cause in debt.causes and self._without(namespace, debt, {cause})

    def claim_gone(self, namespace: str, claim: str) -> bool:
        """The same of a claim: a pod that names it has no longer what its cycle went over budget for."""
        debt = self.by_namespace.get(namespace)
        gone = {uid for uid, claims in debt.causes.items() if claim in claims} if debt else set()
        return debt is not None and bool(gone) and self._without(namespace, debt, gone)

    def _without(self, namespace: str, debt: Debt, gone: AbstractSet[str]) -> bool:
        left = {uid: claims for uid, claims in debt.causes.items() if uid not in gone}
        if left:
            self.by_namespace[namespace] = debt._replace(causes=left)
            return False
        paid_at = min(debt.paid_at, max(debt.paused_until, self._clock.monotonic()))
        self.by_namespace[namespace] = debt._replace(
            paid_at=paid_at, causes=left, would_be_paid_at=debt.paid_at
        )
        return True

    def forgive(self, namespace: str) -> None:
        """End the namespace's debt and its pause."""
        if namespace in self.by_namespace:
            self._forget(namespace)

    def _forget(self, namespace: str) -> None:
        del self.by_namespace[namespace]
        self._busy.pop(namespace, None)
        self.of_placed_pods.discard(namespace)

    def _bound(self) -> None:
        """Forget those of whom there is nothing to know; if there are none, the one that owes least."""
        if len(self.by_namespace) <= MAX_DEBTORS:
            return
        now = self._clock.monotonic()
        over = [namespace for namespace, debt in self.by_namespace.items() if debt.known_until <= now]
        for namespace in over or [
            min(self.by_namespace, key=lambda each: self.by_namespace[each].known_until)
        ]:
            self._forget(namespace)
