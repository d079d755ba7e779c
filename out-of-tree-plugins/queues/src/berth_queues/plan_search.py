"""Where pods of one queue go, and which others have to leave for that: all of them, or no pod is evicted.

    who may leave  of queues that have too much, or less important ones of its own queue, or both (planner.py)
    where          a node with room; else the node where it costs least: violated budgets, the most important
                   victim, how many
    for quota      where nodes have room and the queue has none, the first to go of any node
    who goes       those that no budget protects, of queues of the lowest priority, the least important, of
                   the queues that have most too much, the newest; then who can stays, in the opposite order

A pod of a group that would be too small without it goes with the whole group. Pods that are leaving count as
gone, promises to others as kept.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import groupby, islice

from berth_queues.amounts import Amounts
from berth_queues.candidates import Candidates
from berth_queues.groups import GroupKey
from berth_queues.ledger import Holding
from berth_queues.plan import Claimant, Plan, PlanState, Wanted
from berth_queues.planned_node import PlannedNode
from berth_queues.promises import Place, counting, nominated
from berth_queues.registry import Registry
from berth_queues.tree import Queue
from berth_sdk import Node

MAX_NODES_TRIED = 200
"""On how many nodes victims are looked for; twice as many as pods for a larger group."""


@dataclass
class Search:
    """One search, which changes the registry's use while it runs."""

    state: PlanState
    claimant: Claimant
    candidates: Candidates
    evicted_before: Collection[str]
    own: bool
    others: bool
    gone: dict[str, Holding] = field(default_factory=dict)

    def run(self) -> Plan | None:
        """Return the plan that costs least, None if there is none."""
        self._settle()
        pods = sorted(self.claimant.pods, key=lambda pod: sorted(pod.requests.items()), reverse=True)
        self.asked = self.claimant.asked
        self.of_nodes = {name for name in self.asked if self.state.devices.of_nodes(name)}
        self._registry.use(self.claimant.queue, self.asked)
        self.levels = self._levels()
        if not self.own and not self.levels:
            return None
        self.order = self._victims()
        if not self.order and not self.leaving:
            return None
        self.places = {node.name: self._room(node) for node in self.candidates.nodes}
        self.protected = self.state.budgets.protected(self.order)
        self.order.sort(key=lambda each: each.uid in self.protected)
        self.rank = {each.uid: index for index, each in enumerate(self.order)}
        if self.others and not self._come_within():
            return None
        places = self._place(pods)
        if places is None or not self._make_quota():
            return None
        victims = self._reprieve()
        violations = sum(each.uid in self.protected for each in victims)
        return Plan(places, tuple(victims), violations, entitled=self._levels() > 0)

    def _levels(self) -> int:
        """Return how many queues are within what they are entitled to, from the pods' own upwards."""
        return 0 if self.queue is None else self.state.entitlement.levels_within(self.queue, self.asked)

    def _come_within(self) -> bool:
        """Take less important pods of the queue itself away until it is entitled to the pods' amounts."""
        for each in self.order:
            if self.levels:
                break
            if each.queue == self.claimant.queue and each.uid not in self.gone:
                self._take(self._unit(each))
                self.levels = self._levels()
        return self.levels > 0

    # -- what is there --------------------------------------------------------------------------------------

    @property
    def _registry(self) -> Registry:
        return self.state.ledger.registry

    @property
    def queue(self) -> Queue | None:
        """Return the pods' queue, None where they are in none."""
        return self._registry.queue(self.claimant.queue)

    def _settle(self) -> None:
        """Count who leaves as gone, and what others were promised as used."""
        ledger = self.state.ledger
        going = self.state.promises.victims().union(self.evicted_before)
        self.leaving = ledger.leaving | (going & ledger.by_uid.keys())
        self.going: dict[str, list[Amounts]] = {}
        for each in (ledger.by_uid[uid] for uid in self.leaving):
            self._registry.use(each.queue, each.requests, -1)
            self.going.setdefault(each.node_name, []).append(each.requests)
        held, own = self.state.promises.held(), self.claimant
        for queue, place in counting(held, ledger, own.key, own.queue, own.priority):
            self._registry.use(queue, place.requests)
        self.promised: dict[str, list[Amounts]] = {}
        for place in nominated(held, ledger, own.key, own.queue, own.priority):
            self.promised.setdefault(place.node_name, []).append(place.requests)

    def _room(self, node: Node) -> PlannedNode:
        """Return the node with what it will have left of what the pods ask for."""
        used = self.state.ledger.on_node.get(node.name, {})
        free = {
            name: node.allocatable(name) - used.get(name, 0)
            for name in self.asked
            if name in self.of_nodes or name in node.status.allocatable
        }
        if node.name in self.candidates.without_devices:
            # Slices say how many there are; all that is known here is that none is left.
            free |= dict.fromkeys(self.asked.keys() - free.keys(), 0)
        room = PlannedNode(node.name, free)
        for requests in self.going.get(node.name, ()):
            room.add(requests)
        for requests in self.promised.get(node.name, ()):
            room.add(requests, -1)
        return room

    def _victims(self) -> list[Holding]:
        """Return who may go, the first one first. Cost: O(pods of those queues)."""
        of_others = self._of_others() if self.others else []
        of_own = self._of_own() if self.own else []
        if self.own and self.others and not (of_own and of_others):
            return []  # Each way alone was tried before.
        return of_others + of_own

    def _of_others(self) -> list[Holding]:
        """Return pods of queues that have too much; none gets more by what leaves."""
        queue, of_queues = self.queue, self.state.ledger.by_queue
        if queue is None:
            return []
        depth, may_take = len(list(queue.path())), self.state.entitlement.may_take
        names = [
            name
            for name in of_queues
            if (other := self._registry.queue(name)) is not None and may_take(queue, depth, other, self.asked)
        ]
        return self._sorted(names, self.state.spared_priority)

    def _of_own(self) -> list[Holding]:
        """Return the less important pods of the queue itself, or of no queue."""
        queue, below = self.queue, min(self.state.spared_priority, self.claimant.priority)
        if queue is not None:
            return self._sorted([queue.name], below)
        of_queues = self.state.ledger.by_queue
        return self._sorted([name for name in of_queues if self._registry.queue(name) is None], below)

    def _sorted(self, names: Sequence[str], below: int) -> list[Holding]:
        """Return the pods of those queues that are of less than that priority, the first to go first."""
        own = {pod.uid for pod in self.claimant.pods}
        found = [
            each
            for name in names
            for each in self.state.ledger.by_queue.get(name, {}).values()
            if each.priority < below and each.uid not in self.leaving and each.uid not in own
        ]
        # The newest first, then by what matters more; sorting is stable.
        found.sort(key=lambda each: (each.created, each.uid), reverse=True)
        standing = {name: self._standing(name) for name in {each.queue for each in found}}
        found.sort(key=lambda each: (standing[each.queue][0], each.priority, standing[each.queue][1]))
        return found

    def _standing(self, name: str) -> tuple[int, float]:
        queue = self._registry.queue(name)
        if queue is None:
            return 0, 0.0
        return queue.spec.priority, -self.state.entitlement.excess(queue)

    # -- who goes where -------------------------------------------------------------------------------------

    def _place(self, pods: Sequence[Wanted]) -> dict[str, Place] | None:
        """Find a node for each pod, and take its victims away; None if one finds none.

        What victims cost on a node only grows with each pod, so a node's cost is worked out anew when its
        turn comes, and not for each pod.
        """
        found: dict[str, Place] = {}
        costs: list[tuple[tuple[int, ...], str]] | None = None
        free = sorted(self.places.values(), key=lambda node: (sum(node.free.values()), node.name))
        for requests, equal in groupby(pods, key=lambda pod: pod.requests):
            room = deque(free)
            for pod in equal:
                # A node that has no room for a pod has none for the equal ones after it.
                while room and not room[0].fits(requests):
                    room.popleft()
                if not room:
                    costs = self._costs(pod) if costs is None else costs
                    node = self._cheapest(pod, costs)
                    if node is None:
                        return None
                    room.append(node)
                room[0].add(requests, -1)
                found[pod.uid] = Place(room[0].name, requests)
        return found

    def _costs(self, pod: Wanted) -> list[tuple[tuple[int, ...], str]]:
        self.here: dict[str, list[Holding]] = {}
        for each in self.order:
            if each.node_name in self.places:
                self.here.setdefault(each.node_name, []).append(each)
        most = max(MAX_NODES_TRIED, 2 * len(self.claimant.pods))
        tried = ((name, self._on(self.places[name], pod)) for name in sorted(self.here))
        costs = [(self._cost(victims), name) for name, victims in islice(_there(tried), most)]
        heapify(costs)
        return costs

    def _cheapest(self, pod: Wanted, costs: list[tuple[tuple[int, ...], str]]) -> PlannedNode | None:
        """Take the victims of the cheapest node away, and return it."""
        while costs:
            _, name = heappop(costs)
            victims = self._on(self.places[name], pod)
            if victims is None:
                continue
            cost = self._cost(victims)
            if costs and (cost, name) > costs[0]:
                heappush(costs, (cost, name))
                continue
            self._take(victims)
            heappush(costs, (cost, name))
            return self.places[name]
        return None

    def _on(self, node: PlannedNode, pod: Wanted) -> list[Holding] | None:
        """Return who has to leave the node so that the pod fits, None if that is not enough."""
        taken: list[Holding] = []
        for each in self.here.get(node.name, ()):
            if each.uid not in self.gone and (unit := self._unit(each)) and self._may_go(each):
                self._take(unit)
                taken += unit
            if node.fits(pod.requests):
                break
        fits = node.fits(pod.requests)
        if fits:
            self._stay(taken, lambda unit: node.fits(pod.requests, unit) and self._restored(unit))
        victims = [each for each in taken if each.uid in self.gone]
        self._take(victims, back=True)
        return victims if fits else None

    def _cost(self, victims: Sequence[Holding]) -> tuple[int, ...]:
        violations = sum(each.uid in self.protected for each in victims)
        return violations, max((each.priority for each in victims), default=-(1 << 31)), len(victims)

    def _make_quota(self) -> bool:
        """Take victims of any node away until the queue has room for the pods; whether it has."""
        for each in self.order:
            if not self._lacks():
                return True
            if each.uid not in self.gone and (unit := self._unit(each)) and self._may_go(each):
                self._take(unit)
        return not self._lacks()

    def _lacks(self) -> bool:
        """Return whether the queue uses more than it can have, with the pods."""
        queue = self.queue
        if queue is None:
            return False
        left = (queue.available(resource) for resource in self.asked)
        return any(amount is not None and amount < 0 for amount in left)

    def _may_go(self, each: Holding) -> bool:
        queue, other = self.queue, self._registry.queue(each.queue)
        if each.queue == self.claimant.queue or not self.others:
            return True
        if queue is None or other is None:
            return False
        wanted = {name: amount for name, amount in each.requests.items() if name in self.asked}
        return self.state.entitlement.may_take(queue, self.levels, other, wanted)

    def _unit(self, each: Holding) -> list[Holding]:
        """Return the pods that go with this one; none where one of them has to stay."""
        minimum = self.state.groups.minimum(each.group)
        if each.group is None or minimum <= 1:
            return [each]
        group = self.state.ledger.by_group.get(each.group, {}).values()
        there = [one for one in group if one.uid not in self.gone and one.uid not in self.leaving]
        if len(there) > minimum:
            return [each]
        return [] if any(one.priority >= self.state.spared_priority for one in there) else there

    def _take(self, victims: Sequence[Holding], *, back: bool = False) -> None:
        """Simulate that pods are removed, or restored."""
        for each in victims:
            if back:
                del self.gone[each.uid]
            else:
                self.gone[each.uid] = each
            node = self.places.get(each.node_name)
            if node is not None:
                node.add(each.requests, -1 if back else 1)
            self._registry.use(each.queue, each.requests, 1 if back else -1)

    def _reprieve(self) -> list[Holding]:
        """Restore who can stay beside all pods, and return who can't."""
        self._stay(list(self.gone.values()), self._may_stay)
        return list(self.gone.values())

    def _may_stay(self, unit: Sequence[Holding]) -> bool:
        """Restore pods if nodes and queue have room for them beside all others; return whether they have.

        Pods of the queue itself also have to leave it within what it is entitled to, where others go for it.
        """
        nothing = dict.fromkeys(self.asked, 0)
        nodes = {each.node_name for each in unit} & self.places.keys()
        if not all(self.places[name].fits(nothing, unit) for name in nodes):
            return False
        self._restored(unit)
        if self._lacks() or (self.others and self._levels() < self.levels):
            self._take(unit)
            return False
        return True

    def _restored(self, unit: Sequence[Holding]) -> bool:
        self._take(unit, back=True)
        return True

    def _stay(self, taken: Sequence[Holding], restores: Callable[[Sequence[Holding]], bool]) -> None:
        """Restore those who can stay, the last to go first; `restores` does, and returns whether it did."""
        done: set[str] = set()
        of_group: defaultdict[GroupKey | None, list[Holding]] = defaultdict(list)
        for each in taken:
            of_group[each.group].append(each)
        for each in sorted(taken, key=lambda one: -self.rank.get(one.uid, 0)):
            if each.uid not in done:
                unit = self._together(each, of_group[each.group])
                done |= {one.uid for one in unit}
                restores(unit)

    def _together(self, each: Holding, members: list[Holding]) -> list[Holding]:
        """Return the victims of the same group, which stay or go together if the group needs them all."""
        if each.group is None or self.state.groups.minimum(each.group) <= 1:
            return [each]
        there = len(self.state.ledger.by_group.get(each.group, {})) - len(members)
        return members if there < self.state.groups.minimum(each.group) else [each]


def _there(
    tried: Iterator[tuple[str, list[Holding] | None]] | Collection[tuple[str, list[Holding] | None]],
) -> Iterator[tuple[str, list[Holding]]]:
    return ((name, victims) for name, victims in tried if victims is not None)
