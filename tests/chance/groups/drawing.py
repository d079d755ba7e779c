"""Clusters, and groups and trees that arrive on them one after the other."""

from dataclasses import dataclass, field

from tests.chance.draw import Chance
from tests.chance.groups.model import Cluster, Group, Node, Pod

MEMORY = 256
RELEASES = ((1, 37), (1, 38))


@dataclass
class Arrival:
    """What comes together: a root group with the groups below it, and their pods."""

    groups: list
    pods: list = field(default_factory=list)


@dataclass
class Drawn:
    """A cluster and what arrives on it."""

    cluster: Cluster
    arrivals: list


class Drawing:
    """Draws one seed's cluster."""

    def __init__(self, seed):
        self.chance = Chance(f"groups-{seed}")
        self.release = self.chance.choice(RELEASES)
        self.started = 0
        self.priorities = self.chance.sample(range(200), 200)

    def drawn(self):
        """The whole of it."""
        nodes = [self._node(f"n{i}") for i in range(self.chance.randint(3, 8))]
        cluster = Cluster(self.release, nodes, protected=[a for a in "xy" if self.chance.maybe(0.3)])
        for i in range(self.chance.randint(0, 4)):
            self._old(cluster, f"old{i}")
        for i in range(self.chance.randint(2, 10)):
            self._there(cluster, Pod(f"there{i}", self._cpu(), self._priority(60)))
        return Drawn(cluster, [self._arrival(f"g{i}", nodes) for i in range(self.chance.randint(3, 6))])

    def _node(self, name):
        labels = {"zone": self.chance.choice("abc")} if self.chance.maybe(0.9) else {}
        if labels and self.chance.maybe(0.9):
            labels["rack"] = labels["zone"] + self.chance.choice("12")
        return Node(name, self.chance.randint(2, 9), self.chance.randint(3, 9), MEMORY, labels)

    def _cpu(self):
        return self.chance.randint(1, 3)

    def _priority(self, below):
        """In 1.37 none twice: which of equally important pods and groups is the first victim is left open."""
        if self.release >= (1, 38):
            return self.chance.randrange(0, below, 10)
        found = next(value for value in self.priorities if value < below)
        self.priorities.remove(found)
        return found

    def _old(self, cluster, name):
        """A group, or a tree of two, whose pods run already."""
        priority, tree = self._priority(60), self.release >= (1, 38) and self.chance.maybe(0.3)
        as_one = self.chance.maybe(0.5)
        if tree:
            cluster.groups[name] = Group(name, composite=True, priority=priority, disrupted_as_one=as_one)
        for leaf in (f"{name}-a", f"{name}-b") if tree else (name,):
            mode = self.chance.maybe(0.4) if tree else as_one
            parent = name if tree else ""
            cluster.groups[leaf] = Group(leaf, parent=parent, priority=priority, disrupted_as_one=mode)
            for i in range(self.chance.randint(1, 2)):
                self._there(cluster, Pod(f"{leaf}-{i}", self._cpu(), priority, leaf))

    def _there(self, cluster, pod):
        """Put a pod on a node that has room for it, if there is one."""
        names = [name for name in cluster.nodes if cluster.fits(pod, name)]
        if names:
            self.started += 1
            pod.node, pod.app, pod.started = (
                self.chance.choice(names),
                self.chance.choice("wxyz"),
                self.started,
            )
            cluster.pods[pod.name] = pod

    def _arrival(self, name, nodes):
        arrival = Arrival([])
        priority, preempts = self._priority(120), self.chance.maybe(0.85)
        self._group(arrival, name, "", priority, depth=self.chance.choice((1, 1, 2, 2, 3, 4)))
        uniform, cpu = self.chance.maybe(0.6), self._cpu()
        weights = dict(
            zip([n.name for n in nodes], self.chance.sample(range(1, 101), len(nodes)), strict=True)
        )
        for group in arrival.groups:
            for i in range(0 if group.composite else self.chance.randint(1, 4)):
                amount = cpu if uniform else self._cpu()
                pod = Pod(
                    f"{group.name}-{i}",
                    amount,
                    priority,
                    group.name,
                    weights,
                    preempts,
                    self.chance.choice("wxyz"),
                )
                arrival.pods.append(pod)
            if not group.composite and self.chance.maybe(0.8):
                count = sum(pod.group == group.name for pod in arrival.pods)
                least = self.chance.choice((1, count, count, count + self.chance.maybe(0.15)))
                group.needed = least
        return arrival

    def _group(self, arrival, name, parent, priority, depth):
        topology = self.chance.choice((None, "zone", "rack"))
        group = Group(name, depth > 1, parent, topology=topology, priority=priority)
        group.disrupted_as_one = self.chance.maybe(0.4) and (self.release >= (1, 38) or not group.composite)
        arrival.groups.append(group)
        if group.composite:
            children = self.chance.randint(1, 3)
            for i in range(children):
                self._group(arrival, f"{name}{'abc'[i]}", name, priority, self.chance.choice((1, depth - 1)))
            if self.chance.maybe(0.7):
                group.needed = self.chance.randint(1, children)
