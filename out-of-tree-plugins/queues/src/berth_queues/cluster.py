"""All books of the cluster in step: queues, pods on nodes, pods that wait, promises."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from berth_queues.amounts import Amounts, add
from berth_queues.device_claims import GROUP, ClaimKey, DeviceClaims, PodDevices, devices_asked
from berth_queues.elastic_quotas import ELASTIC_QUOTAS
from berth_queues.entitlement import Entitlement
from berth_queues.fair_shares import Shares, fair_shares
from berth_queues.groups import GroupKey, Groups, group_key
from berth_queues.koordinator import KOORDINATOR_QUOTAS
from berth_queues.ledger import Ledger
from berth_queues.order import Order
from berth_queues.past_use import PastUse
from berth_queues.plan import Wanted
from berth_queues.promises import PATIENCE_SECONDS, Place, Promises
from berth_queues.queue_objects import NAMESPACES, QUEUES
from berth_queues.registry import Registry
from berth_queues.settings import Settings
from berth_queues.tally import Tallies, Tally
from berth_queues.tree import Queue
from berth_queues.waiting import WaitingPods
from berth_sdk import Clock, Node, ObjectKey, Pod


class Cluster:
    """What the plugin knows; `weight` of a namespace's own queue is asked of the plugin's arguments."""

    patience = PATIENCE_SECONDS

    def __init__(self, clock: Clock, weight: Callable[[str], float] = lambda _: 1.0) -> None:
        self.registry = Registry(weight)
        self.ledger = Ledger(self.registry)
        self.groups = Groups()
        self.devices = DeviceClaims()
        self.waiting = WaitingPods()
        self.order = Order(self.registry, self.waiting)
        self.promises = Promises(clock.now)
        self.past = PastUse(self.registry)
        self.tallies = Tallies()
        self._now = clock.now
        self.in_transfer = False
        self._nodes: list[tuple[str, Amounts]] = []

    # -- pods -----------------------------------------------------------------------------------------------

    def place(self, pod: Pod, node_name: str, attempt: int) -> None:
        """Count a pod on a node."""
        if pod.uid not in self.ledger.by_uid:
            self.promises.victim_back(pod.uid)
        asked = devices_asked(pod)
        self.devices.hold(asked)
        self.ledger.put(pod, self.devices.asked(asked), node_name, attempt)
        group = self.ledger.by_uid[pod.uid].group
        if self.ledger.by_uid[pod.uid].leaving:
            self.promises.victim_leaving(pod.uid)
        if not attempt:
            for key in (pod.uid, group):
                self.promises.placed(key, pod.uid)
        self.waiting.placed(pod.uid, self._now())
        if not attempt:
            self._count_placed(pod.uid)
        self.past.note(self.ledger.by_uid[pod.uid].queue, self._now())

    def release(self, uid: str, attempt: int) -> None:
        """Drop what an attempt holds."""
        self.ledger.release(uid, attempt)
        if uid not in self.ledger.by_uid:
            self._devices_left(uid)
            self.waiting.removed(uid)

    def remove(self, uid: str) -> bool:
        """Count a pod on no node any more; whether a promise waited for that."""
        holding = self.ledger.drop(uid)
        if holding is not None:
            self._devices_left(uid)
            # It may be evicted before the state has shown it on its node.
            self._count_placed(uid)
            self.waiting.removed(uid)
            self.waiting.changed.add(holding.queue)
            self.past.note(holding.queue, self._now())
        gone_for_others = self.promises.victim_gone(uid)
        if holding is not None and gone_for_others:
            self.tallies.evicted(holding.queue)
        return gone_for_others

    def waits_no_more(self, uid: str) -> None:
        """Count a pod no longer among the waiting: it was bound, or is gone."""
        self._count_placed(uid)
        self.waiting.leave(uid)

    def _count_placed(self, uid: str) -> None:
        pod = self.waiting.by_uid.get(uid)
        if pod is not None:
            self.tallies.placed(pod)

    def claim_key(self, uid: str, group: GroupKey | None) -> Hashable:
        """Return under what places are promised: the group where others have to find one with the pod.

        What was promised to the pod with its group stays so: its own place must not count against the last
        one, for which no other lacks.
        """
        if group is None:
            return uid
        promise = self.promises.by_key.get(group)
        planned = promise is not None and uid in promise.places
        return group if planned or self._lacking(uid, group) else uid

    def withdraw(self, uid: str, group: GroupKey | None) -> bool:
        """Hold no place for a pod that is gone; whether there was one."""
        return any(self.promises.withdraw(key, uid) for key in (uid, group))

    def _lacking(self, uid: str, group: GroupKey) -> int:
        """Return how many pods of the group have to find a place with that one."""
        there = self.ledger.by_group.get(group, {})
        placed = sum(not each.leaving and each.uid != uid for each in there.values())
        return max(0, self.groups.minimum(group) - placed - 1)

    def wanted(self, pod: PodDevices, group: GroupKey | None) -> list[Wanted]:
        """Return a pod, and as many others of its group as have to find a place with it.

        Pods of the group that are not known yet count as pods like this one; a claim that several name counts
        for the first.
        """
        found = [Wanted(pod.uid, self.devices.asked(pod))]
        if group is None:
            return found
        waiting = self.waiting.by_group.get(group, {}).values()
        others = [each for each in waiting if not each.placed and each.uid != pod.uid]
        lacking = self._lacking(pod.uid, group)
        counted = self._shared(pod)
        for each in others[:lacking]:
            amounts = self.devices.asked(each.asked, counted) if each.asked.claims else each.amounts
            found.append(Wanted(each.uid, amounts))
            counted |= self._shared(each.asked)
        like_it = self.devices.asked(pod, counted)
        found += [Wanted(f"{pod.uid} like it {i}", like_it) for i in range(lacking - len(others))]
        return found

    def _shared(self, pod: PodDevices) -> set[ClaimKey]:
        """Return the claims of a pod that count once, however many pods have them."""
        return {charge.shared for charge in self.devices.charges(pod) if charge.once}

    def _devices_left(self, uid: str) -> None:
        self._recount(self.devices.leave(uid))

    def _recount(self, uids: Iterable[str]) -> None:
        """Count devices anew for these placed pods."""
        for uid in uids:
            placed = self.devices.placed(uid)
            if placed is not None:
                self.ledger.recount(uid, self.devices.asked(placed))

    def held_by(self, group: GroupKey | None) -> dict[str, Place]:
        """Return the places that attempts at other pods of a group hold now."""
        there = {} if group is None else self.ledger.by_group.get(group, {})
        return {uid: Place(each.node_name, each.requests) for uid, each in there.items() if each.attempt}

    # -- nodes ----------------------------------------------------------------------------------------------

    def put_node(self, index: int, node: Node) -> None:
        """Count what a node offers."""
        offered = {name: node.allocatable(name) for name in node.status.allocatable}
        for _, before in self._nodes[index : index + 1]:
            self.registry.offer(before, -1)
        self._nodes[index : index + 1] = [(node.name, offered)]
        self.registry.offer(offered)

    def remove_node(self, index: int, last: int) -> None:
        """Count it no more."""
        self.registry.offer(self._nodes[index][1], -1)
        self._nodes[index] = self._nodes[last]
        del self._nodes[last]

    # -- objects --------------------------------------------------------------------------------------------

    def put_object(self, key: ObjectKey, source: bytes) -> bool:
        """Take over an object; whether pods that wait may fit now."""
        registry = self.registry
        match (key.group, key.resource):
            case (group, _) if group == GROUP:
                self._recount(self.devices.put(key, source))
                return False
            case (QUEUES.group, QUEUES.resource):
                changed = registry.objects.put(key, source)
            case (ELASTIC_QUOTAS.group, ELASTIC_QUOTAS.resource):
                changed = registry.quotas.put(key, source)
            case (KOORDINATOR_QUOTAS.group, KOORDINATOR_QUOTAS.resource):
                changed = registry.koordinator.put(key, source)
            case (NAMESPACES.group, NAMESPACES.resource):
                changed = registry.objects.put_namespace(key.name, source)
            case _:
                self._recount(self.devices.put_group(group_key(key), source))
                return self.groups.put(key, source)
        return self._queues(changed=changed)

    def remove_object(self, key: ObjectKey) -> bool:
        """Drop an object; whether pods that wait may fit now."""
        registry = self.registry
        match (key.group, key.resource):
            case (group, _) if group == GROUP:
                self._recount(self.devices.remove(key))
                return False
            case (QUEUES.group, QUEUES.resource):
                changed = registry.objects.remove(key)
            case (ELASTIC_QUOTAS.group, ELASTIC_QUOTAS.resource):
                changed = registry.quotas.remove(key)
            case (KOORDINATOR_QUOTAS.group, KOORDINATOR_QUOTAS.resource):
                changed = registry.koordinator.remove(key)
            case (NAMESPACES.group, NAMESPACES.resource):
                registry.objects.remove_namespace(key.name)
                return False
            case _:
                self._recount(self.devices.remove_group(group_key(key)))
                return self.groups.remove(key)
        return self._queues(changed=changed)

    def reset(self) -> None:
        """Forget all of the cluster, but who waits and what was promised in vain."""
        self.ledger.clear()
        self.groups.clear()
        self.devices.clear()
        self.promises.clear()
        self._nodes.clear()
        for pod in self.waiting.by_uid.values():
            self.waiting.removed(pod.uid)
        self.in_transfer = True

    def settled(self) -> None:
        """Find the queue of each pod, once all is there."""
        self.in_transfer = False
        self._regroup()

    def configure(self, settings: Settings) -> None:
        """Work out what depends on arguments anew."""
        self.past.configure(settings.halfLifeSeconds, settings.pastStrength)
        self.registry.changed()

    def _queues(self, *, changed: bool) -> bool:
        if changed:
            self.registry.changed()
            if not self.in_transfer:
                self._regroup()
        return changed

    def _regroup(self) -> None:
        self.ledger.regroup()
        for pod in list(self.waiting.by_uid.values()):
            queue = self.registry.name_of(pod.namespace, pod.labels)
            if queue != pod.queue:
                self.waiting.moved(pod, queue)

    # -- shares ---------------------------------------------------------------------------------------------

    def demand(self) -> Mapping[str, Amounts]:
        """Return what the pods of each queue use and wait for."""
        found: dict[str, dict[str, int]] = {name: dict(own) for name, own in self.registry.own.items()}
        for name, line in self.waiting.lines.items():
            add(found.setdefault(name, {}), line.wanted)
        return found

    def shares(self) -> Shares:
        """Return the fair share of each queue now."""
        self.past.adjust(self._now())
        return fair_shares(self.registry.tree, self.demand(), self.registry.factors)

    def entitlement(self, *, by_fair_share: bool) -> Entitlement:
        """Return what queues may take back."""
        return Entitlement(self.shares() if by_fair_share else None)

    def waiting_in(self, queue: Queue) -> int:
        """Return how many pods wait in a queue and those below it. The depth is bounded by that of trees."""
        own = self.waiting.lines[queue.name].pods if queue.name in self.waiting.lines else ()
        waiting = sum(pod.placed_at is None for pod in (own.values() if own else ()))
        return waiting + sum(self.waiting_in(child) for child in queue.children)

    def shown(self) -> dict[str, Any]:
        """Return what each queue has, and what became of its pods, for people and simulations."""
        shares = self.shares()
        names = {*self.registry.tree.queues, *self.registry.own, *self.waiting.lines, *self.tallies.by_queue}
        return {name: self._shown(name, shares) for name in sorted(names)}

    def _shown(self, name: str, shares: Shares) -> dict[str, Any]:
        queue, tally = self.registry.queue(name), self.tallies.by_queue.get(name, Tally())
        waiting = self.waiting.lines[name].pods.values() if name in self.waiting.lines else ()
        waited = [self._now() - pod.since for pod in waiting if pod.placed_at is None]
        return {
            "parent": queue.parent.name if queue is not None and queue.parent is not None else "",
            "quota": {} if queue is None else dict(queue.subtree),
            "used": dict(self.registry.used(name)),
            "wanted": dict(self.waiting.wanted(name)),
            "fairShare": shares.get(name, {}),
            "borrowed": {} if queue is None else queue.borrowed,
            "waiting": len(waited) if queue is None else self.waiting_in(queue),
            "placed": tally.placed,
            "evicted": tally.evicted,
            "waitedSeconds": tally.waited_seconds,
            "longestWaitSeconds": max([tally.longest_seconds, *waited]),
            "millionths": self.order.share(name),
        }
