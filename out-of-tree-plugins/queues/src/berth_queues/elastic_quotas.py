"""ElasticQuotas of scheduler-plugins: one queue for each namespace that has one.

All of them are below one queue that has no quota of its own, so that they borrow what others leave of their
`min`.

Source: kustomize/third-party-crds/elasticquotas.yaml.
"""

import logging
from dataclasses import dataclass, field

import msgspec

from berth_queues.amounts import Amounts, read_amounts
from berth_queues.tree import QueueSpec
from berth_sdk import ObjectKey, WatchedResource

ELASTIC_QUOTAS = WatchedResource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas")
KIND = "ElasticQuota"
ROOT = QueueSpec("ElasticQuotas", shares_apart=True)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Quota:
    """One namespace's quota; a resource that `max` does not name is not limited."""

    namespace: str
    name: str
    min: Amounts
    max: Amounts

    @property
    def queue(self) -> str:
        """Return the name of the queue that the quota is."""
        return f"{KIND} {self.namespace}/{self.name}"

    def spec(self, weight: float) -> QueueSpec:
        """Return the quota as a queue."""
        return QueueSpec(self.queue, ROOT.name, quota=self.min, limit=self.max, weight=weight)


class _Spec(msgspec.Struct):
    min: dict[str, str | int | float] = {}
    max: dict[str, str | int | float] = {}


class _Document(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decoder = msgspec.json.Decoder(_Document)


@dataclass
class Quotas:
    """The quotas there are; of several in a namespace the one whose name comes first counts."""

    by_namespace: dict[str, Quota] = field(default_factory=dict)
    _all: dict[str, dict[str, Quota]] = field(default_factory=dict)

    def put(self, key: ObjectKey, source: bytes) -> bool:
        """Take over a quota; whether that changes what counts. One that can't be read is as good as none."""
        try:
            quota = read(key, source)
        except (msgspec.MsgspecError, ValueError) as error:
            log.warning("quota ignored quota=%s err=%s", f"{key.namespace}/{key.name}", error)
            return self.remove(key)
        self._all.setdefault(key.namespace, {})[key.name] = quota
        return self._choose(key.namespace)

    def remove(self, key: ObjectKey) -> bool:
        """Forget a quota; whether that changes what counts."""
        self._all.get(key.namespace, {}).pop(key.name, None)
        return self._choose(key.namespace)

    def clear(self) -> None:
        """Forget all of them."""
        self.by_namespace.clear()
        self._all.clear()

    def all(self) -> list[Quota]:
        """Return every quota that was read, those that do not count included."""
        return [quota for there in self._all.values() for quota in there.values()]

    def _choose(self, namespace: str) -> bool:
        there = self._all.get(namespace, {})
        if not there:
            self._all.pop(namespace, None)
        if len(there) > 1:
            log.warning("several quotas, the first by name counts namespace=%s", namespace)
        before = self.by_namespace.pop(namespace, None)
        chosen = there[min(there)] if there else None
        if chosen is not None:
            self.by_namespace[namespace] = chosen
        return chosen != before


def read(key: ObjectKey, source: bytes) -> Quota:
    """Return the quota that an object is.

    Raises: msgspec.MsgspecError, ValueError: it is none.
    """
    spec = _decoder.decode(source).spec
    least, most = read_amounts("spec.min", spec.min), read_amounts("spec.max", spec.max)
    return Quota(key.namespace, key.name, least, most)
