"""How much CPU a cycle may use, and what a pod and its namespace pay for having used more.

    begin --meter--> cycle --+--> within the budget: counts towards what an ordinary pod costs
                             +--> over it: the namespace owes time; the pod is held back, each time for longer

A namespace pays back slowly: for CPU that its pods used in cycles over budget it owes a hundred times as much
time, and these pods come back one debt after the other. So they use one hundredth of a CPU together, however
many there are; and as long as the namespace owes anything, cycles of its pods have a small budget.

    pop --wait_seconds--+--> 0: the cycle begins
                        +--> a cycle of the namespace went over budget a moment ago: the pod comes back later
                        +--> one of its cycles was long, and others are ready: it comes back soon

So others wait for one such cycle, not for those of all pods that the namespace has in the queue. Nor do they
wait for one cycle of each of many namespaces: while some had long cycles a moment ago, the first one of
another namespace has half the budget of the one before it.

What a cycle does on account of placed pods (`CycleMeter.on_account_of`) is no part of its budget: where it is
more than the budget, the namespaces of these pods owe it. And where one namespace after the other goes over,
the budget is too small for this cluster: it is doubled, and what these namespaces owe is forgiven.

What is owed ends with the pods that it is owed for (debts.py), and so does holding others back for it.

Why, and with which figures: docs/decisions/0020-cycle-budget.md.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf

from berth.cycle.debts import BETWEEN_TURNS_SECONDS, FOR_CPU, NO_CAUSES, PLACED_PODS, Debts
from berth.framework.attempts.cycle_budget import CpuTime, CycleMeter
from berth.framework.clock import Clock
from berth.framework.pacing import Backoff
from berth.framework.ports.background import Background
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_volumes import named_claims

log = logging.getLogger(__name__)

ORDINARY_PODS = 100
"""A budget is what so many ordinary pods cost."""
LEAST_SECONDS = 0.1
MAX_SECONDS = 2.5
NODE_SECONDS = 0.0001
"""On top of that for each node: in a large cluster a first look at everything takes its time."""
ORDINARY_PODS_OF_DEBTORS = 10
LEAST_SECONDS_OF_DEBTORS = 0.01
NODE_SECONDS_OF_DEBTORS = 0.00001
GROUP_SECONDS = 10.0
"""A group's cycle has the budgets of its pods together, up to this."""
ORDINARY_PODS_A_MEMBER = 10
"""A group's cycle may cost at least that for each of its pods."""

MAX_HALVINGS = 16
MAX_LOOKED_AT = 64
"""This many entries of the queue are looked at to see whether others are ready behind a pod."""

SEVERAL_NAMESPACES = 4
"""Where so many go over budget with no cycle within its budget between them, the budget is too small."""

ITS_LAST_STEP = "its last step"

WEIGHT = 1 / 256
"""How much one cycle counts in the running average."""
MAX_TIMES_ORDINARY = 2
"""A cycle counts there as so many times the average at most, so that the long cycles of some do not raise it
unless most cycles are long."""

LONGEST_HOLD_SECONDS = 300.0

MAX_CLAIMS = 64
"""A debt does not end with the claims of a pod that names more."""
NO_CLAIMS: frozenset[str] = frozenset()


def _ignore(profile: str) -> None:
    """Nothing is counted."""
    del profile


def _release_none(namespaces: AbstractSet[str]) -> None:
    """Nothing is held back."""
    del namespaces


def _none_held() -> Mapping[str, int]:
    """No pods are placed."""
    return {}


def named_by(pod: Pod) -> frozenset[str]:
    """The claims that the pod names, as `namespace/name`; none where they are too many to remember."""
    if len(pod.spec.volumes) + len(pod.spec.resource_claims) > MAX_CLAIMS:
        return NO_CLAIMS
    names = [*named_claims(pod), *(each.resource_claim_name for each in pod.spec.resource_claims)]
    return frozenset(f"{pod.namespace}/{name}" for name in names if name)


@dataclass(slots=True)
class CycleBudgets:
    """The budgets of one scheduler; `on_exceeded` is called with the profile of each cycle over its budget.

    Units: seconds of CPU; debts are time.
    """

    clock: Clock
    background: Background
    on_exceeded: Callable[[str], None] = _ignore
    on_forgiven: Callable[[AbstractSet[str]], None] = _release_none
    """Called with the namespaces whose pods were held back for what they do not owe any more."""
    terms_by_namespace: Callable[[], Mapping[str, int]] = _none_held
    """How many affinity terms the placed pods of each namespace hold."""
    ordinary_seconds: float = 0.0
    """What a pod costs whose cycle ends within its budget: a running average."""
    debts: Debts = field(init=False)
    exceeding: dict[str, float] = field(default_factory=dict)
    """The budgets that namespaces went over since a cycle last kept within its own."""
    _cpu: CpuTime = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._cpu = CpuTime(self.clock)
        self.debts = Debts(self.clock)

    def begin(self, info: QueuedPodInfo, nodes: int) -> CycleMeter:
        """The meter of a cycle for that pod, in a cluster with so many nodes."""
        self._end_debts_of_placed_pods()
        info.meter = self._meter(self._limit(info.pod.namespace, nodes), self._little(nodes), (info.pod,))
        return info.meter

    def begin_group(self, infos: list[QueuedPodInfo], nodes: int) -> CycleMeter:
        """The meter of one cycle for all these pods, which are of one namespace."""
        self._end_debts_of_placed_pods()
        one = self._limit(infos[0].pod.namespace, nodes)
        least = max(one, len(infos) * ORDINARY_PODS_A_MEMBER * self.ordinary_seconds)
        limit = max(least, min(len(infos) * one, GROUP_SECONDS))
        meter = self._meter(limit, len(infos) * self._little(nodes), [info.pod for info in infos])
        for info in infos:
            info.meter = meter
        return meter

    def wait_seconds(self, pod: Pod, upcoming: Callable[[int], Iterable[Pod]]) -> float:
        """How much later the pod may be tried, because of what its namespace just used; 0 for now.

        `upcoming` gives the pods whose turn comes next, to which a namespace yields after a long cycle.
        """
        if not self.debts.by_namespace:
            return 0.0
        seconds, yields = self.debts.wait_seconds(pod.namespace), self.debts.yields
        if seconds or not yields(pod.namespace):
            return seconds
        others = (each for each in upcoming(MAX_LOOKED_AT) if not yields(each.namespace))
        return 0.0 if next(others, None) is None else BETWEEN_TURNS_SECONDS

    def pod_gone(self, pod: Pod) -> None:
        """End what the namespace of a deleted pod owes for that pod alone; its other pods come back."""
        self._end(pod.namespace, ended=self.debts.cause_gone(pod.namespace, pod.uid))

    def claim_gone(self, key: str) -> None:
        """The same for the pods that name a claim that is gone, of devices or of a volume."""
        namespace = key.partition("/")[0]
        self._end(namespace, ended=self.debts.claim_gone(namespace, key))

    def look(self, namespace: str, nodes: int) -> CycleMeter:
        """The meter of a question about a pod that is no cycle, and is put to no account."""
        return self._meter(self._limit(namespace, nodes), inf)

    def without_limit(self) -> CycleMeter:
        """The meter of what follows a decision: everything else has its turn, and no account is charged."""
        return self._meter(inf, inf)

    def settle(self, info: QueuedPodInfo) -> None:
        """Put what the pod's cycle has used to its account, once; what more it uses is not counted."""
        meter = info.meter
        if meter is None or meter.settled:
            return
        meter.settled = True
        for namespace, seconds in meter.others_seconds.items():
            if seconds > meter.limit_seconds:
                self.debts.charge(namespace, seconds, {PLACED_PODS: NO_CLAIMS})
                log.warning(
                    "placed pods took more than a cycle's budget namespace=%s pod=%s "
                    "used_seconds=%.3f owed_seconds=%.1f",
                    namespace,
                    info.pod.key,
                    seconds,
                    self.debts.owed(namespace),
                )
        if meter.used_seconds > meter.limit_seconds:
            meter.exceeded_in = meter.exceeded_in or ITS_LAST_STEP
        pod = info.pod
        if meter.used_seconds > meter.little_seconds:
            self.debts.took_long(pod.namespace, meter.used_seconds)
        if not meter.exceeded_in:
            self._count_as_ordinary(meter.used_seconds / len(meter.pods))
            self.exceeding.clear()
            return
        alone = meter.used_seconds > self._usual_seconds
        owes = self.debts.owed(pod.namespace)
        if alone or owes:
            causes = {each.uid: named_by(each) for each in meter.pods} if alone else NO_CAUSES
            self.debts.charge(pod.namespace, meter.used_seconds, causes)
            self.exceeding.setdefault(pod.namespace, meter.limit_seconds / len(meter.pods))
        self.on_exceeded(pod.spec.scheduler_name)
        log.warning(
            "scheduling cycle exceeded its budget pod=%s profile=%s "
            "budget_seconds=%.3f used_seconds=%.3f in=%s owed_seconds=%.1f",
            pod.key,
            pod.spec.scheduler_name,
            meter.limit_seconds,
            meter.used_seconds,
            meter.exceeded_in,
            self.debts.owed(pod.namespace),
        )
        if len(self.exceeding) >= SEVERAL_NAMESPACES:
            self._raise()

    def hold(self, info: QueuedPodInfo) -> None:
        """Settle the cycle of a pod that goes back to the queue, and hold it back if it went over budget."""
        self.settle(info)
        meter, info.meter = info.meter, None
        if meter is None or not meter.exceeded_in or not self.debts.owed(info.pod.namespace):
            info.over_budget_count, info.over_budget_seconds, info.held_until = 0, 0.0, None
            return
        info.over_budget_count += 1
        info.over_budget_seconds += meter.used_seconds
        hold = Backoff(FOR_CPU * info.over_budget_seconds, LONGEST_HOLD_SECONDS)
        seconds = max(hold.pause(info.over_budget_count), self.debts.owed(info.pod.namespace))
        info.held_until = self.clock.monotonic() + seconds
        log.warning(
            "pod held back pod=%s seconds=%.1f over_budget_attempts=%s over_budget_seconds=%.3f",
            info.pod.key,
            seconds,
            info.over_budget_count,
            info.over_budget_seconds,
        )

    def _end_debts_of_placed_pods(self) -> None:
        """End debts for affinity terms that the snapshot has none of any more."""
        if self.debts.of_placed_pods:
            held = self.terms_by_namespace()
            for namespace in self.debts.of_placed_pods - held.keys():
                self.debts.of_placed_pods.discard(namespace)
                self._end(namespace, ended=self.debts.cause_gone(namespace, PLACED_PODS))

    def _end(self, namespace: str, *, ended: bool) -> None:
        if ended:
            log.info("what a namespace owed ended with the pods that caused it namespace=%s", namespace)
            self.on_forgiven(frozenset((namespace,)))

    def _raise(self) -> None:
        """Double the budget, and forgive those who went over the one before."""
        namespaces = frozenset(self.exceeding)
        self.ordinary_seconds = min(2 * max(self.exceeding.values()), MAX_SECONDS) / ORDINARY_PODS
        self.exceeding.clear()
        for namespace in namespaces:
            self.debts.forgive(namespace)
        log.warning(
            "budget of scheduling cycles raised budget_seconds=%.3f namespaces=%s",
            ORDINARY_PODS * self.ordinary_seconds,
            ",".join(sorted(namespaces)),
        )
        self.on_forgiven(namespaces)

    def _count_as_ordinary(self, seconds: float) -> None:
        """Let the average follow."""
        highest = MAX_TIMES_ORDINARY * max(self.ordinary_seconds, LEAST_SECONDS / ORDINARY_PODS)
        self.ordinary_seconds += WEIGHT * (min(seconds, highest) - self.ordinary_seconds)

    def _meter(self, limit_seconds: float, little_seconds: float, pods: Sequence[Pod] = ()) -> CycleMeter:
        return CycleMeter(limit_seconds, self._cpu, self.background.breathe, pods, little_seconds)

    def _limit(self, namespace: str, nodes: int) -> float:
        if self.debts.owed(namespace):
            return self._little(nodes)
        usual = self._usual_seconds + nodes * NODE_SECONDS
        if self.debts.knows(namespace):
            return usual
        return max(usual / (1 << min(self.debts.busy(), MAX_HALVINGS)), self._little(nodes))

    def _little(self, nodes: int) -> float:
        """The budget of a namespace that owes something; what takes more is a long cycle."""
        little = max(ORDINARY_PODS_OF_DEBTORS * self.ordinary_seconds, LEAST_SECONDS_OF_DEBTORS)
        return min(little, MAX_SECONDS) + nodes * NODE_SECONDS_OF_DEBTORS

    @property
    def _usual_seconds(self) -> float:
        """The budget of a namespace that owes nothing, in a cluster without nodes."""
        return min(max(ORDINARY_PODS * self.ordinary_seconds, LEAST_SECONDS), MAX_SECONDS)
