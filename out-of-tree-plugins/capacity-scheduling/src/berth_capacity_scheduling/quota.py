"""ElasticQuotas: what each namespace is guaranteed, and how much it may use at most.

Source: kustomize/third-party-crds/elasticquotas.yaml.
"""

import logging
from dataclasses import dataclass, field

import msgspec

from berth_capacity_scheduling.amounts import Amounts
from berth_sdk import ObjectKey, WatchedResource
from berth_sdk.quantity import units

ELASTIC_QUOTAS = WatchedResource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas")
KIND = "ElasticQuota"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Quota:
    """One namespace's quota; a resource that `max` does not name is not limited."""

    namespace: str
    name: str
    min: Amounts
    max: Amounts

    def __str__(self) -> str:
        return f"{KIND} {self.namespace}/{self.name}"


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
            log.warning("quota ignored quota=%s/%s error=%r", key.namespace, key.name, str(error))
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

    def _choose(self, namespace: str) -> bool:
        there = self._all.get(namespace, {})
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
    least = {name: units(name, amount) for name, amount in spec.min.items()}
    most = {name: units(name, amount) for name, amount in spec.max.items()}
    return Quota(key.namespace, key.name, least, most)
