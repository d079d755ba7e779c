"""A small model of two schedulers and one lease, of which every order of events can be tried.

Two nodes have room for one pod each, which the API server does not check. Each scheduler sees bindings in
order, any time later; requests land any time later. What the code guarantees is a rule that can be left out:

    fence     a new leader decides once it has seen a consistent read begun after the acquisition (prove)
    settled   that read begins when no own request can land any more (WriteGuard.settled)
    bound     a lease runs out only after what its holder sent has landed or never will (landing_seconds)
    terms     what was decided in an earlier term is not sent (WriteGuard.begin_term)
    answered  a lease is given back only when no own request is under way (Leadership.release)
"""

from itertools import product
from typing import NamedTuple

RULES = frozenset({"fence", "settled", "bound", "terms", "answered"})
PODS, NODES, SCHEDULERS = (0, 1), (0, 1), (0, 1)
MAX_TERMS = 3
NO_HOLDER = -1
STANDBY, FENCED, PROVING, DECIDING = range(4)


class Decision(NamedTuple):
    """A pod and its node, and the term in which that was decided."""

    pod: int
    node: int
    term: int


class Scheduler(NamedTuple):
    """What one scheduler knows and does."""

    state: int = STANDBY
    fresh: bool = False
    term: int = 0
    seen: int = 0
    wanted: int = 0
    assumed: frozenset = frozenset()
    unsent: frozenset = frozenset()
    sent: frozenset = frozenset()


class ModelState(NamedTuple):
    """Everything: the bindings in their order, who holds the lease, how often it was taken."""

    bound: tuple = ()
    holder: int = NO_HOLDER
    terms: int = 0
    schedulers: tuple = (Scheduler(), Scheduler())

    def with_(self, number, **changes):
        """The state with one scheduler changed."""
        changed = list(self.schedulers)
        changed[number] = changed[number]._replace(**changes)
        return self._replace(schedulers=tuple(changed))


def overcommitted(state):
    """Whether two pods are on one node."""
    nodes = [node for _, node in state.bound]
    return len(nodes) != len(set(nodes))


def counterexample(rules):
    """The names of the events that lead to an overcommitted node, None where no order of events does.

    Also how many states there are.
    """
    start = ModelState()
    came_from = {start: None}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if overcommitted(state):
            return story(came_from, state), len(came_from)
        for name, after in steps(state, rules):
            if after not in came_from:
                came_from[after] = (name, state)
                waiting.append(after)
    return None, len(came_from)


def story(came_from, state):
    """How that state came about."""
    names = []
    while came_from[state]:
        name, state = came_from[state]
        names.append(name)
    return names[::-1]


def steps(state, rules):
    """Every event that may be the next one, and the state after it."""
    if state.holder != NO_HOLDER:
        holder = state.schedulers[state.holder]
        if not holder.fresh and not (holder.sent and "bound" in rules):
            yield "runs out", state._replace(holder=NO_HOLDER)
    for number in SCHEDULERS:
        for name, after in own_steps(state, number, state.schedulers[number], rules):
            yield f"{number} {name}", after


def own_steps(state, number, me, rules):
    """The events of one scheduler."""
    yield from leading(state, number, me, rules)
    yield from seeing(state, number, me, rules)
    if me.state == DECIDING:
        yield from deciding(state, number, me)
    yield from writing(state, number, me, rules)


def leading(state, number, me, rules):
    if me.state == STANDBY and state.holder in (NO_HOLDER, number) and state.terms < MAX_TERMS:
        begun = FENCED if "fence" in rules else DECIDING
        taken = state._replace(holder=number, terms=state.terms + 1)
        yield "acquires", taken.with_(number, state=begun, fresh=True, term=state.terms + 1)
    if me.state != STANDBY:
        yield "loses", state.with_(number, state=STANDBY, fresh=False)
        if not (me.sent and "answered" in rules):
            yield (
                "gives back",
                state._replace(holder=NO_HOLDER).with_(number, state=STANDBY, fresh=False),
            )


def seeing(state, number, me, rules):
    if me.seen < len(state.bound):
        pod, _ = state.bound[me.seen]
        confirmed = frozenset(each for each in me.assumed if each[0] != pod)
        yield "sees", state.with_(number, seen=me.seen + 1, assumed=confirmed)
    if me.state == FENCED and not (me.sent and "settled" in rules):
        yield "reads", state.with_(number, state=PROVING, wanted=len(state.bound))
    if me.state == PROVING and me.seen >= me.wanted:
        yield "is proven", state.with_(number, state=DECIDING)


def deciding(state, number, me):
    known = set(state.bound[: me.seen]) | me.assumed
    pods, full = {pod for pod, _ in known}, {node for _, node in known}
    for pod, node in product(PODS, NODES):
        if pod not in pods and node not in full:
            decision = Decision(pod, node, me.term)
            changes = {"assumed": me.assumed | {(pod, node)}, "unsent": me.unsent | {decision}}
            yield f"decides {pod} on {node}", state.with_(number, **changes)


def writing(state, number, me, rules):
    for each in me.unsent:
        left, room = me.unsent - {each}, (each.pod, each.node)
        if me.fresh and (each.term == me.term or "terms" not in rules):
            yield f"sends {room}", state.with_(number, unsent=left, sent=me.sent | {each})
        else:
            yield f"refuses {room}", state.with_(number, unsent=left, assumed=me.assumed - {room})
    for each in me.sent:
        left, room = me.sent - {each}, (each.pod, each.node)
        landed = state.with_(number, sent=left)
        if each.pod in {pod for pod, _ in state.bound}:
            yield f"conflicts {room}", landed.with_(number, assumed=me.assumed - {room})
        else:
            yield f"lands {room}", landed._replace(bound=(*state.bound, room))
        if room in me.assumed and (not me.fresh or each.term != me.term):
            # In doubt, found on no node, and not to be sent once more: the room is given up before it lands.
            yield f"gives up {room}", state.with_(number, assumed=me.assumed - {room})
