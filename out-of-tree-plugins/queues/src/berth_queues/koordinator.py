"""Koordinator's ElasticQuotas: trees of quotas by labels, as its scheduler reads them.

A quota's `min` includes what its children are guaranteed, so its own quota is what they leave of it. Not
carried over: `scaleMin`, guaranteed usage, and quotas of `koordinator-system-quota` and `koordinator-
default-quota`.

Source: koordinator apis/extension/elastic_quota.go (v1.6).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from berth_queues.amounts import Amounts, read_amounts
from berth_queues.competing import CompetingQuotas
from berth_queues.tree import QueueSpec
from berth_sdk import ObjectKey, WatchedResource

KOORDINATOR_QUOTAS = WatchedResource("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas")
PREFIX = "quota.scheduling.koordinator.sh/"
POD_LABEL = PREFIX + "name"
ROOT_NAME = "koordinator-root-quota"
SYSTEM_NAMES = frozenset({"koordinator-system-quota", "koordinator-default-quota"})
MAX_NAMESPACES = 256


def queue_name(quota: str) -> str:
    """Return the name of the queue that a quota is; koordinator's quotas are known by their name alone."""
    return f"ElasticQuota {quota} (koordinator)"


class _Metadata(msgspec.Struct):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct):
    min: dict[str, str | int | float] = {}
    max: dict[str, str | int | float] = {}


class _Document(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


@dataclass(frozen=True, slots=True)
class KoordinatorQuota:
    """One quota, with the total of its tree where it is the tree's root."""

    key: ObjectKey
    parent: str
    min: Amounts
    max: Amounts
    weights: Amounts
    total: Amounts | None
    lends: bool
    namespaces: tuple[str, ...]


_decoder = msgspec.json.Decoder(_Document)
_quantities = msgspec.json.Decoder(dict[str, str | int | float])
_names = msgspec.json.Decoder(tuple[str, ...])


class KoordinatorQuotas(CompetingQuotas[KoordinatorQuota]):
    """The quotas there are, by name; of several with one name the one whose namespace comes first counts."""

    def __init__(self) -> None:
        super().__init__(read, lambda key: (key.name, key.namespace))

    def put(self, key: ObjectKey, source: bytes) -> bool:
        """Take over a quota, unless it is one of koordinator's own; whether that changes what counts."""
        return key.name not in SYSTEM_NAMES and super().put(key, source)

    def namespaces(self) -> dict[str, str]:
        """Return the quota of each namespace that one names, the first by name."""
        found: dict[str, str] = {}
        for name in sorted(self.counting):
            for namespace in self.counting[name].namespaces:
                found.setdefault(namespace, name)
        return found

    def specs(self) -> Iterable[QueueSpec]:
        """Yield the quotas as queues, and the root that those without a parent are below."""
        if not self.counting:
            return
        children: dict[str, dict[str, int]] = {}
        for quota in self.counting.values():
            sums = children.setdefault(quota.parent, {})
            for resource, amount in quota.min.items():
                sums[resource] = sums.get(resource, 0) + amount
        if ROOT_NAME not in self.counting:
            yield QueueSpec(queue_name(ROOT_NAME), owns_nodes=True)
        for name, quota in self.counting.items():
            yield _spec(name, quota, children.get(name, {}))


def _spec(name: str, quota: KoordinatorQuota, of_children: Amounts) -> QueueSpec:
    is_root = name == ROOT_NAME or quota.total is not None
    spec = QueueSpec(
        queue_name(name),
        "" if is_root else queue_name(quota.parent or ROOT_NAME),
        quota={resource: max(0, n - of_children.get(resource, 0)) for resource, n in quota.min.items()},
        lending_limit={} if quota.lends else dict.fromkeys(quota.min, 0),
        limit={} if is_root else quota.max,
        weights={resource: float(n) for resource, n in (quota.weights or quota.max).items()},
        owns_nodes=is_root and quota.total is None,
    )
    if quota.total is not None:
        left = {resource: max(0, n - of_children.get(resource, 0)) for resource, n in quota.total.items()}
        return replace(spec, quota=left)
    return spec


def read(key: ObjectKey, source: bytes) -> KoordinatorQuota:
    """Return the quota that an object is.

    Raises: msgspec.MsgspecError, ValueError: it is none.
    """
    document = _decoder.decode(source)
    labels, annotations, spec = document.metadata.labels, document.metadata.annotations, document.spec
    total = annotations.get(PREFIX + "total-resource")
    names = _names.decode(annotations.get(PREFIX + "namespaces", "[]"))
    if len(names) > MAX_NAMESPACES:
        raise ValueError(f"metadata.annotations[{PREFIX}namespaces]: more than {MAX_NAMESPACES} namespaces")
    return KoordinatorQuota(
        key,
        labels.get(PREFIX + "parent", ""),
        read_amounts("spec.min", spec.min),
        read_amounts("spec.max", spec.max),
        read_amounts("shared-weight", _quantities.decode(annotations.get(PREFIX + "shared-weight", "{}"))),
        None if total is None else read_amounts("total-resource", _quantities.decode(total)),
        labels.get(PREFIX + "allow-lent-resource", "true") != "false",
        names,
    )
