"""ElasticQuotas of scheduler-plugins: one queue for each namespace that has one.

All of them are below one queue that has no quota of its own, so that they borrow what others leave of their
`min`.

Source: kustomize/third-party-crds/elasticquotas.yaml.
"""

from dataclasses import dataclass

import msgspec

from berth_queues.amounts import Amounts, read_amounts
from berth_queues.competing import CompetingQuotas
from berth_queues.tree import QueueSpec
from berth_sdk import ObjectKey, WatchedResource

ELASTIC_QUOTAS = WatchedResource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas")
KIND = "ElasticQuota"
ROOT = QueueSpec("ElasticQuotas", shares_apart=True)


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


class Quotas(CompetingQuotas[Quota]):
    """The quotas there are; of several in a namespace the one whose name comes first counts."""

    def __init__(self) -> None:
        super().__init__(read, lambda key: (key.namespace, key.name))


def read(key: ObjectKey, source: bytes) -> Quota:
    """Return the quota that an object is.

    Raises: msgspec.MsgspecError, ValueError: it is none.
    """
    spec = _decoder.decode(source).spec
    least, most = read_amounts("spec.min", spec.min), read_amounts("spec.max", spec.max)
    return Quota(key.namespace, key.name, least, most)
