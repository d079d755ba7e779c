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
MOST_TERMS = 3
NOBODY = -1
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


class World(NamedTuple):
    """Everything: the bindings in their order, who holds the lease, how often it was taken."""

    bound: tuple = ()
    holder: int = NOBODY
    terms: int = 0
    schedulers: tuple = (Scheduler(), Scheduler())

    def with_(self, number, **changes):
        """The world with one scheduler changed."""
        changed = list(self.schedulers)
        changed[number] = changed[number]._replace(**changes)
        return self._replace(schedulers=tuple(changed))


def overcommitted(world):
    """Whether two pods are on one node."""
    nodes = [node for _, node in world.bound]
    return len(nodes) != len(set(nodes))


def counterexample(rules):
    """The names of the events that lead to an overcommitted node, None where no order of events does.

    Also how many worlds there are.
    """
    start = World()
    came_from = {start: None}
    waiting = [start]
    while waiting:
        world = waiting.pop()
        if overcommitted(world):
            return story(came_from, world), len(came_from)
        for name, after in steps(world, rules):
            if after not in came_from:
                came_from[after] = (name, world)
                waiting.append(after)
    return None, len(came_from)


def story(came_from, world):
    """How that world came about."""
    names = []
    while came_from[world]:
        name, world = came_from[world]
        names.append(name)
    return names[::-1]


def steps(world, rules):
    """Every event that may be the next one, and the world after it."""
    if world.holder != NOBODY:
        holder = world.schedulers[world.holder]
        if not holder.fresh and not (holder.sent and "bound" in rules):
            yield "runs out", world._replace(holder=NOBODY)
    for number in SCHEDULERS:
        for name, after in own_steps(world, number, world.schedulers[number], rules):
            yield f"{number} {name}", after


def own_steps(world, number, me, rules):
    """The events of one scheduler."""
    yield from leading(world, number, me, rules)
    yield from seeing(world, number, me, rules)
    if me.state == DECIDING:
        yield from deciding(world, number, me)
    yield from writing(world, number, me, rules)


def leading(world, number, me, rules):
    if me.state == STANDBY and world.holder in (NOBODY, number) and world.terms < MOST_TERMS:
        state = FENCED if "fence" in rules else DECIDING
        taken = world._replace(holder=number, terms=world.terms + 1)
        yield "acquires", taken.with_(number, state=state, fresh=True, term=world.terms + 1)
    if me.state != STANDBY:
        yield "loses", world.with_(number, state=STANDBY, fresh=False)
        if not (me.sent and "answered" in rules):
            yield (
                "gives back",
                world._replace(holder=NOBODY).with_(number, state=STANDBY, fresh=False),
            )


def seeing(world, number, me, rules):
    if me.seen < len(world.bound):
        pod, _ = world.bound[me.seen]
        confirmed = frozenset(each for each in me.assumed if each[0] != pod)
        yield "sees", world.with_(number, seen=me.seen + 1, assumed=confirmed)
    if me.state == FENCED and not (me.sent and "settled" in rules):
        yield "reads", world.with_(number, state=PROVING, wanted=len(world.bound))
    if me.state == PROVING and me.seen >= me.wanted:
        yield "is proven", world.with_(number, state=DECIDING)


def deciding(world, number, me):
    known = set(world.bound[: me.seen]) | me.assumed
    pods, full = {pod for pod, _ in known}, {node for _, node in known}
    for pod, node in product(PODS, NODES):
        if pod not in pods and node not in full:
            decision = Decision(pod, node, me.term)
            changes = {"assumed": me.assumed | {(pod, node)}, "unsent": me.unsent | {decision}}
            yield f"decides {pod} on {node}", world.with_(number, **changes)


def writing(world, number, me, rules):
    for each in me.unsent:
        left, room = me.unsent - {each}, (each.pod, each.node)
        if me.fresh and (each.term == me.term or "terms" not in rules):
            yield f"sends {room}", world.with_(number, unsent=left, sent=me.sent | {each})
        else:
            yield f"refuses {room}", world.with_(number, unsent=left, assumed=me.assumed - {room})
    for each in me.sent:
        left, room = me.sent - {each}, (each.pod, each.node)
        landed = world.with_(number, sent=left)
        if each.pod in {pod for pod, _ in world.bound}:
            yield f"conflicts {room}", landed.with_(number, assumed=me.assumed - {room})
        else:
            yield f"lands {room}", landed._replace(bound=(*world.bound, room))
        if room in me.assumed and (not me.fresh or each.term != me.term):
            # In doubt, found on no node, and not to be sent once more: the room is given up before it lands.
            yield f"gives up {room}", world.with_(number, assumed=me.assumed - {room})
