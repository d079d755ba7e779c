"""What is known of one node now: the node object and the sum of its pods.

The cache changes it; a snapshot copies it into a row. A node that pods name but that does not exist (yet, or
any more) is a ghost: it keeps its pods and never appears in a snapshot.

Source: pkg/scheduler/framework/types.go NodeInfo (Kubernetes v1.36).
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TypeVar

from berth.objects.node import Amount, Node
from berth.objects.pods.host_ports import HostPort
from berth.objects.pods.pod_requests import Units, scaled
from berth.objects.resource_names import PODS, is_accounted
from berth.snapshot.bounded_cache import size_of
from berth.snapshot.pod_info import PodInfo

K = TypeVar("K")

REMEMBERED = 256
"""So many different offers are remembered: the nodes of a large cluster are of a few shapes."""
REMEMBERED_BYTES = 8192
"""How large they may be: a kubelet may write thousands of amounts, and any number of digits."""


class NodeInfo:
    """One node's object, pods and sums, in the scheduler's units."""

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "claims",
        "name",
        "node",
        "node_changed",
        "non_zero",
        "pods",
        "ports",
        "requested",
        "unseen",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.allocatable: Units = {}
        self.allowed_pods = 0
        self.pods: dict[str, PodInfo] = {}
        self.requested: Units = {}
        self.non_zero = [0, 0]
        self.ports: dict[HostPort, int] = {}
        self.claims: dict[str, int] = {}
        self.node_changed = False
        self.unseen: list[tuple[int, PodInfo]] = []
        """Pods added (+1) and removed (-1) since the snapshot last took this node over."""

    @property
    def ghost(self) -> bool:
        """Whether there is no node object."""
        return self.node is None

    def set_node(self, node: Node | None) -> None:
        """Take over the node object, or lose it."""
        amounts = node.status.allocatable if node else {}
        # What may fail comes before what is changed.
        allocatable = _units(amounts)
        allowed_pods = scaled(PODS, amounts[PODS]) if PODS in amounts else 0
        self.node, self.node_changed = node, True
        self.allocatable, self.allowed_pods = allocatable, allowed_pods

    def add_pod(self, info: PodInfo) -> None:
        """Count a pod in."""
        self.pods[info.uid] = info
        self._count(info, 1)

    def remove_pod(self, uid: str) -> PodInfo:
        """Count a pod out.

        Raises: KeyError where the pod is not here.
        """
        info = self.pods.pop(uid)
        self._count(info, -1)
        # A dictionary that had many keys keeps their room otherwise.
        self.requested, self.ports = self.requested or {}, self.ports or {}
        self.claims = self.claims or {}
        return info

    def _count(self, info: PodInfo, sign: int) -> None:
        counted = info.footprint
        for name, amount in counted.requests.items():
            _tally(self.requested, name, sign * amount)
        self.non_zero[0] += sign * counted.non_zero[0]
        self.non_zero[1] += sign * counted.non_zero[1]
        _tally_each(self.ports, counted.ports, sign)
        _tally_each(self.claims, counted.claims, sign)
        self.unseen.append((sign, info))


def _units(amounts: Mapping[str, Amount]) -> Units:
    """The amounts that are accounted for, in a dictionary that nodes of one shape share."""
    offer = tuple(amounts.items())
    return _remembered(offer) if size_of(offer) <= REMEMBERED_BYTES else _read(offer)


def _read(amounts: tuple[tuple[str, Amount], ...]) -> Units:
    return {name: scaled(name, amount) for name, amount in amounts if is_accounted(name)}


_remembered = lru_cache(maxsize=REMEMBERED)(_read)


def _tally_each(counts: dict[K, int], keys: Collection[K], sign: int) -> None:
    """Count each of the keys once; nearly always those of a pod are its alone, and there may be many."""
    if sign > 0 and counts.keys().isdisjoint(keys):
        counts.update(dict.fromkeys(keys, 1))
        return
    for key in keys:
        _tally(counts, key, sign)


def _tally(counts: dict[K, int], key: K, more: int) -> None:
    count = counts.get(key, 0) + more
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
