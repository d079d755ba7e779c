"""What an attempt at a pod, a pod group or a tree of groups comes to, by Kubernetes 1.37 and 1.38.

Nodes have cpu and a number of pods, pods prefer nodes by weights that differ, so that the best node is one.
Where upstream draws, or leaves an order open, the model asks `choose`; the caller tries all choices.

Source: KEP-4671, KEP-5710, KEP-5732, KEP-6012; pkg/scheduler/schedule_one_podgroup.go, framework/preemption
(Kubernetes v1.37, v1.38).
"""

from dataclasses import dataclass, field, replace

PER_POD = 1
"""Memory that each pod requests; it is never what keeps a pod from a node."""
PREEMPTION = "pod group preemption: "


@dataclass
class Node:
    name: str
    cpu: int
    pods: int
    memory: int
    labels: dict


@dataclass
class Group:
    """A PodGroup, or with `composite` a CompositePodGroup; `needed` None says basic."""

    name: str
    composite: bool = False
    parent: str = ""
    needed: int | None = None
    topology: str | None = None
    priority: int = 0
    disrupted_as_one: bool = False

    @property
    def minimum(self):
        return self.needed or 1


@dataclass
class Pod:
    name: str
    cpu: int
    priority: int = 0
    group: str = ""
    weights: dict = field(default_factory=dict)
    preempts: bool = True
    app: str = ""
    started: int = 0
    node: str = ""
    nominated: str = ""


@dataclass
class Outcome:
    """What can be seen after an attempt, or several at once."""

    bound: dict = field(default_factory=dict)
    victims: set = field(default_factory=set)
    nominated: dict = field(default_factory=dict)
    conditions: dict = field(default_factory=dict)
    """By group: status, reason, and texts that the message has in it."""
    gated: bool = False


@dataclass
class _Result:
    ok: bool
    placed: dict = field(default_factory=dict)
    texts: tuple = ()
    below: dict = field(default_factory=dict)
    """Of a CompositePodGroup: the results of the groups right below that were tried."""


class Cluster:
    """Nodes, pods and groups; `protected` are values of the label app whose pods a budget protects."""

    def __init__(self, release, nodes, pods=(), groups=(), protected=()):
        self.release = release
        self.nodes = {node.name: node for node in nodes}
        self.pods = {pod.name: pod for pod in pods}
        self.groups = {group.name: group for group in groups}
        self.protected = set(protected)

    def copy(self):
        copied = Cluster(self.release, (), (), self.groups.values(), self.protected)
        copied.nodes = self.nodes
        copied.pods = {name: replace(pod) for name, pod in self.pods.items()}
        return copied

    # What there is.

    def children(self, name):
        """The groups right below, which were created at the same time: by name."""
        return sorted((g for g in self.groups.values() if g.parent == name), key=lambda g: g.name)

    def leaves(self, group):
        if not group.composite:
            return [group]
        return [leaf for child in self.children(group.name) for leaf in self.leaves(child)]

    def root(self, group):
        return self.root(self.groups[group.parent]) if group.parent else group

    def every(self, group):
        yield group
        for child in self.children(group.name) if group.composite else ():
            yield from self.every(child)

    def members(self, group, *, placed):
        found = [p for p in self.pods.values() if p.group == group.name and bool(p.node) == placed]
        return sorted(found, key=lambda pod: (-pod.priority, pod.name))

    # Single pods.

    def fits(self, pod, name):
        """Beside the pods that are there; pods in flight, as all of a group are, hold no nominated node."""
        node = self.nodes[name]
        others = [p for p in self.pods.values() if p.name != pod.name and p.node == name]
        return len(others) < node.pods and sum(p.cpu for p in others) + pod.cpu <= node.cpu

    def node_for(self, pod, within):
        if pod.nominated in within and self.fits(pod, pod.nominated):
            return pod.nominated
        fitting = [name for name in within if self.fits(pod, name)]
        return max(fitting, key=pod.weights.__getitem__, default="")

    # Groups.

    def scheduled(self, group):
        return sum(len(self.members(leaf, placed=True)) for leaf in self.leaves(group))

    def placements(self, group, within):
        """The domains of the group's topology, only that of its scheduled pods if there are such."""
        if group.topology is None:
            return [list(within)]
        domains = {}
        for name in within:
            if (value := self.nodes[name].labels.get(group.topology)) is not None:
                domains.setdefault(value, []).append(name)
        there = {
            self.nodes[pod.node].labels.get(group.topology)
            for leaf in self.leaves(group)
            for pod in self.members(leaf, placed=True)
        }
        return [names for value, names in domains.items() if not there or value in there]

    def usage(self, names):
        there = [p for p in self.pods.values() if p.node in names]
        return sum(p.cpu for p in there), PER_POD * len(there)


@dataclass
class Attempt:
    """One attempt at what is queued as one; pods that are tried stand in `cluster` meanwhile."""

    cluster: Cluster
    choose: object
    """Gives a number below the given one."""

    # One pod group: pods one after the other, within some nodes.

    def default(self, group, within):
        cluster, placed = self.cluster, {}
        scheduled, waiting = cluster.scheduled(group), cluster.members(group, placed=False)
        remaining = len(waiting)
        for pod in waiting:
            if scheduled + remaining < group.minimum:
                break
            remaining -= 1
            if name := cluster.node_for(pod, within):
                placed[pod.name] = name
                scheduled += 1
                self.put({pod.name: name})
        self.take(placed)
        return self.judged(group, scheduled, remaining, placed)

    @staticmethod
    def judged(group, scheduled, remaining, placed):
        if scheduled >= group.minimum:
            return _Result(True, placed)
        counts = f"{scheduled} scheduled, {remaining} remaining"
        return _Result(False, {}, (f"minCount ({group.minimum}) cannot be satisfied: {counts}",))

    def put(self, placed):
        for name, node in placed.items():
            self.cluster.pods[name].node = node

    def take(self, placed):
        for name in placed:
            self.cluster.pods[name].node = ""

    # Placements.

    def tried(self, group, within, *, alone=False):
        """The group in the best of its placements; what it has placed stands afterwards."""
        placements = self.cluster.placements(group, within)
        if not placements:
            return _Result(False, {}, ("no feasible placements found",))
        first = self.nominated(group, placements) if alone else None
        if first is not None:
            result = self.default(group, first)
            if result.ok and result.placed:
                self.put(result.placed)
                return result
            if result.ok:
                result = _Result(False)
            results = [(first, result)]
        else:
            results = []
        for names in placements:
            if names is not first:
                result = self.children(group, names) if group.composite else self.default(group, names)
                self.take(_all(result))
                results.append((names, result))
        fitting = [(names, result) for names, result in results if result.ok]
        if not fitting:
            worst = results[0 if first is not None else self.choose(len(results))][1]
            return replace(worst, texts=self.nowhere(worst, len(results)))
        best = self.best(group, fitting) if len(fitting) > 1 else fitting[0][1]
        self.put(_all(best))
        return best

    def nominated(self, group, placements):
        if self.cluster.release < (1, 38) or group.composite:
            return None
        names = {pod.nominated for pod in self.cluster.members(group, placed=False)}
        found = [placement for placement in placements if names & set(placement)]
        return found[0] if len(found) == 1 else None

    def nowhere(self, worst, many):
        if self.cluster.release < (1, 38):
            return worst.texts
        return (f"0/{many} placements are available, first placement status: " + "".join(worst.texts),)

    def best(self, group, fitting):
        """The highest sum of PodGroupPodsCount and of NodeResourcesFit, drawn among equals."""
        before = self.cluster.scheduled(group)
        counts = [before + len(_all(result)) for _, result in fitting]
        totals = [
            100 * count // max(counts) + self.fullness(names, _all(result))
            for count, (names, result) in zip(counts, fitting, strict=True)
        ]
        highest = [result for total, (_, result) in zip(totals, fitting, strict=True) if total == max(totals)]
        return highest[self.choose(len(highest))]

    def fullness(self, names, placed):
        cpu, memory = self.cluster.usage(names)
        cpu += sum(self.cluster.pods[name].cpu for name in placed)
        memory += PER_POD * len(placed)
        nodes = [self.cluster.nodes[name] for name in names]
        shares = [
            min(used, capacity) * 100 // capacity
            for used, capacity in (
                (cpu, sum(node.cpu for node in nodes)),
                (memory, sum(node.memory for node in nodes)),
            )
        ]
        return sum(shares) // len(shares)

    # Trees.

    def children(self, group, within):
        """A CompositePodGroup within one placement; what is placed below it stands if it succeeds."""
        children, scheduled, below = self.cluster.children(group.name), 0, {}
        remaining = len(children)
        for child in children:
            if scheduled + remaining < group.minimum:
                break
            remaining -= 1
            below[child.name] = result = self.of_child(child, within)
            scheduled += result.ok
        judged = self.judged(group, scheduled, remaining, {})
        judged.below = below
        if not judged.ok:
            for result in below.values():
                self.take(_all(result))
        return judged

    def of_child(self, child, within):
        return self.tried(child, within)

    def root(self, group):
        """The root's result; nothing of it stands afterwards."""
        result = self.tried(group, list(self.cluster.nodes), alone=not group.composite)
        self.take(_all(result))
        if result.ok and not _all(result):
            text = "no pods were schedulable" if self.cluster.release >= (1, 38) else ""
            return replace(result, ok=False, texts=(text,))
        return result


def _all(result):
    """The pods placed by a result, where all groups above them succeeded."""
    if not result.ok:
        return {}
    return result.placed | {name: node for each in result.below.values() for name, node in _all(each).items()}


# Preemption.


def units(cluster, importance):
    """Less important pods and groups, the most important first: each a list of pods."""
    found = {}
    for pod in cluster.pods.values():
        if not pod.node:
            continue
        owner, at = None, cluster.groups.get(pod.group)
        while at is not None:
            owner = at if at.disrupted_as_one else owner
            at = cluster.groups.get(at.parent)
        found.setdefault(owner.name if owner else f"pod {pod.name}", []).append(pod)
    lower = {name: pods for name, pods in found.items() if _priority(cluster, pods) < importance}
    return sorted(lower.values(), key=lambda pods: _rank(cluster, lower, pods))


def _priority(cluster, pods):
    group = cluster.groups.get(pods[0].group)
    return pods[0].priority if group is None else cluster.root(group).priority


def _rank(cluster, named, pods):
    """Trees before pod groups, from 1.38 on, and pods of groups before others, also those that go alone."""
    owner = cluster.groups.get(next(name for name, each in named.items() if each is pods))
    tree = owner is not None and owner.composite and cluster.release >= (1, 38)
    kind = 3 if tree else 2 if pods[0].group else 1
    return (
        -_priority(cluster, pods),
        -kind,
        -len(pods),
        min(pod.started for pod in pods),
        min(p.name for p in pods),
    )


def preempted(cluster, root, choose):
    """The victims, the nodes that pods found, and the text of preemption for a group that fits nowhere."""
    waiting = [pod for leaf in cluster.leaves(root) for pod in cluster.members(leaf, placed=False)]
    if not all(pod.preempts for pod in waiting):
        return set(), {}, "not eligible due to preemptionPolicy=Never."
    lower = units(cluster, root.priority)
    if not lower:
        return set(), {}, "No preemption victims found for incoming preemptor"
    before = {pod.name: pod.node for pods in lower for pod in pods}
    attempt = Attempt(cluster, choose)
    attempt.take(before)
    gone = {name: cluster.pods.pop(name) for name in before}
    result = attempt.root(root)
    if not result.ok:
        return set(), {}, "".join(result.texts)
    victims = set(before)
    for pods in sorted(lower, key=lambda pods: not any(pod.app in cluster.protected for pod in pods)):
        names = {pod.name: before[pod.name] for pod in pods}
        cluster.pods |= {name: gone[name] for name in names}
        attempt.put(names)
        if _still_fit(cluster, attempt, _all(result)):
            victims -= names.keys()
        else:
            attempt.take(names)
            for name in names:
                del cluster.pods[name]
    return victims, _all(result), f"found a placement for podgroup, preempting {len(victims)} victims"


def _still_fit(cluster, attempt, placed):
    stand = {}
    fit = True
    for name, node in placed.items():
        if not cluster.fits(cluster.pods[name], node):
            fit = False
            break
        stand[name] = node
        attempt.put(stand)
    attempt.take(stand)
    return fit


# What is seen of it all.


def complete(cluster, group):
    """Whether enough of the group is there for it to be tried."""
    if group.composite:
        return sum(complete(cluster, child) for child in cluster.children(group.name)) >= group.minimum
    return sum(pod.group == group.name for pod in cluster.pods.values()) >= group.minimum


def attempted(cluster, root, choose):
    """What is seen once the scheduler has nothing to do at this moment; `cluster` has it afterwards.

    A group of which pods are left over is tried at once again.
    """
    outcome = Outcome()
    if not complete(cluster, root):
        outcome.gated = True
        return outcome
    while any(cluster.members(leaf, placed=False) for leaf in cluster.leaves(root)):
        result = Attempt(cluster, choose).root(root)
        text = ""
        if result.ok:
            placed = _all(result)
            Attempt(cluster, choose).put(placed)
            outcome.bound |= placed
        else:
            victims, nominated, text = preempted(cluster.copy(), root, choose)
            outcome.victims |= victims
            outcome.nominated |= nominated
        _conditions(cluster, outcome, root, result=result, above=result, text=text)
        if not result.ok:
            break
    for name in outcome.victims:
        cluster.pods.pop(name, None)
    for name, node in outcome.nominated.items():
        cluster.pods[name].nominated = node
    return outcome


def _conditions(cluster, outcome, group, *, result, above, text):
    """Each group's own; one that was not tried, or is in vain, shares that of the group above."""
    own = above if result is None or (result.ok and not above.ok) else result
    if not group.composite or cluster.release >= (1, 38):
        if own.ok:
            outcome.conditions[group.name] = ("True", "Scheduled", ())
        elif outcome.conditions.get(group.name, ("",))[0] != "True":
            preemption = (PREEMPTION, text) if text else ()
            outcome.conditions[group.name] = ("False", "Unschedulable", (*own.texts, *preemption))
    for child in cluster.children(group.name) if group.composite else ():
        below = None if result is None else result.below.get(child.name)
        _conditions(cluster, outcome, child, result=below, above=own, text=text)
