"""Which queues there are, whatever kind of object says so, and which of them a pod is in.

    the pod's label queues.berth.dev/queue            where that Queue admits the pod's namespace, else it
    waits the pod's label quota.scheduling.koordinator.sh/name its namespace's label, or the first Queue by
    name that admits the namespace its namespace's ElasticQuota the koordinator quota that names the
    namespace none of them: a queue of the namespace's own, which has no quota and no limit

What pods use is kept by queue name, so that a change of queues costs a sum over queues and none over pods.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from berth_queues.amounts import Amounts, add
from berth_queues.elastic_quotas import ROOT, Quotas
from berth_queues.koordinator import POD_LABEL, KoordinatorQuotas
from berth_queues.koordinator import queue_name as koordinator_name
from berth_queues.queue_objects import LABEL, QueueObjects
from berth_queues.queue_objects import queue_name as object_name
from berth_queues.tree import NO_AMOUNTS, Queue, QueueSpec, Tree

Weights = Callable[[str], float]
"""The weight of a namespace's queue, by the plugin's arguments."""


def namespace_queue(namespace: str) -> str:
    """Return the name of the queue of a namespace that no object gives one."""
    return f"Namespace {namespace}"


@dataclass
class Registry:
    """Queues by name, and what the pods of each use."""

    weight: Weights = lambda _: 1.0
    objects: QueueObjects = field(default_factory=QueueObjects)
    quotas: Quotas = field(default_factory=Quotas)
    koordinator: KoordinatorQuotas = field(default_factory=KoordinatorQuotas)
    offered: dict[str, int] = field(default_factory=dict)
    """What all nodes offer."""
    own: dict[str, dict[str, int]] = field(default_factory=dict)
    """What the pods of each queue itself use."""
    factors: dict[str, float] = field(default_factory=dict)
    """By how much the past makes a queue's weight another; absent: by nothing."""
    _tree: Tree | None = None
    _of_namespace: dict[str, str] = field(default_factory=dict)
    _koordinator_namespaces: dict[str, str] = field(default_factory=dict)

    @property
    def tree(self) -> Tree:
        """Return all queues as they are now, with what is used. Cost: O(queues) after a change."""
        if self._tree is None:
            self._tree = self._built()
        return self._tree

    def changed(self) -> None:
        """Work the queues out anew when they are next looked at."""
        self._tree = None
        self._of_namespace.clear()
        self._koordinator_namespaces = self.koordinator.namespaces()

    def offer(self, amounts: Amounts, sign: int = 1) -> None:
        """Count what a node offers, or no more."""
        add(self.offered, amounts, sign)
        if any(queue.spec.owns_nodes for queue in self.tree.roots()):
            self._tree = None

    def use(self, name: str, amounts: Amounts, sign: int = 1) -> None:
        """Count amounts as used by a queue's own pods, or as free again."""
        if self._tree is not None and name in self._tree.queues:
            self._tree.queues[name].use(amounts, sign)
        own = self.own.setdefault(name, {})
        add(own, amounts, sign)
        if not own:
            del self.own[name]

    @contextmanager
    def simulated(self) -> Iterator[None]:
        """Take back at the end of the block all use that it counts."""
        tree = self.tree
        used = {name: dict(queue.used) for name, queue in tree.queues.items()}
        own = {name: dict(amounts) for name, amounts in self.own.items()}
        try:
            yield
        finally:
            self.own = own
            for name, amounts in used.items():
                tree.queues[name].used = amounts

    def queue(self, name: str) -> Queue | None:
        """Return the queue, None for a namespace's own."""
        return self.tree.queues.get(name)

    def root_of(self, name: str) -> str:
        """Return the name of the root of a queue; a namespace's own queue is one itself."""
        queue = self.queue(name)
        return name if queue is None else queue.root.name

    def name_of(self, namespace: str, labels: Mapping[str, str]) -> str:
        """Return the name of the queue of a pod with these labels. Cost: O(1) but for a namespace's first."""
        wanted = labels.get(LABEL)
        if wanted is not None:
            return object_name(wanted)
        quota = labels.get(POD_LABEL)
        if quota is not None and quota in self.koordinator.counting:
            return koordinator_name(quota)
        if namespace not in self._of_namespace:
            self._of_namespace[namespace] = self._by_namespace(namespace)
        return self._of_namespace[namespace]

    def misplaced(self, namespace: str, labels: Mapping[str, str]) -> str | None:
        """Return why the pod can be in no queue, None if it can."""
        wanted = labels.get(LABEL)
        if wanted is not None and self.objects.named(wanted, namespace) is None:
            return f"Queue {wanted} does not exist, or does not admit pods of namespace {namespace}"
        name = self.name_of(namespace, labels)
        queue = self.queue(name)
        if queue is not None and queue.children:
            return f"{name} has queues below it: pods go to one of those"
        if queue is None and wanted is not None:
            return f"{name}: {self.tree.errors.get(name, 'it is no queue')}"
        return None

    def clear(self) -> None:
        """Forget all queues and all use."""
        for kind in (self.objects, self.quotas, self.koordinator):
            kind.clear()
        self.own.clear()
        self.offered.clear()
        self.changed()

    def _by_namespace(self, namespace: str) -> str:
        found = self.objects.of_namespace(namespace)
        if found:
            return object_name(found)
        if namespace in self.quotas.counting:
            return self.quotas.counting[namespace].queue
        if namespace in self._koordinator_namespaces:
            return koordinator_name(self._koordinator_namespaces[namespace])
        return namespace_queue(namespace)

    def _built(self) -> Tree:
        specs: dict[str, QueueSpec] = {spec.name: spec for spec in self.objects.specs()}
        if self.quotas.counting:
            specs[ROOT.name] = ROOT
        for namespace, quota in self.quotas.counting.items():
            specs[quota.queue] = quota.spec(self.weight(namespace))
        specs.update((spec.name, spec) for spec in self.koordinator.specs())
        tree = Tree(specs, self.offered)
        for name, amounts in self.own.items():
            if name in tree.queues:
                tree.queues[name].use(amounts)
        return tree

    def weight_of(self, queue: Queue) -> float:
        """Return a queue's weight beside its siblings, with its past."""
        return queue.spec.weight * self.factors.get(queue.name, 1.0)

    def used(self, name: str) -> Amounts:
        """Return what a queue uses in all, those below it included as far as they do not keep it."""
        queue = self.queue(name)
        return self.own.get(name, NO_AMOUNTS) if queue is None else queue.used
