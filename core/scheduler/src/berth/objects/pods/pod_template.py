"""What pods of one workload have in common: all that plugins read of a pod besides its name, node and status.

Templates are interned: equal pods share one object, so what follows from it is worked out once, and two pods
ask the same of every plugin if their templates are the same object. A template goes with its last pod.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from berth.objects.api_object import OwnerReference
from berth.objects.pods.pod_spec import PodSpec
from berth.objects.steps import Steps

T = TypeVar("T")
Labels = dict[str, str]
Owners = tuple[OwnerReference, ...]

TOKEN_VOLUME = "kube-api-access"  # noqa: S105 - the name of a volume
"""What the API server calls the volume of a pod's token, five letters of chance left out."""

_UNMADE: Any = object()
_encode = msgspec.json.Encoder(order="deterministic").encode


class PodTemplate:
    """Namespace, labels, owners and spec of pods; the spec names no node. Compared by identity.

    `size_bytes` is about how much JSON it is. What is hung on a template must hold no pod: pods hold it.
    """

    __slots__ = (
        "__weakref__",
        "_derived",
        "has_ephemeral_claims",
        "labels",
        "last_annotations",
        "namespace",
        "owner_references",
        "size_bytes",
        "spec",
    )

    def __init__(
        self, namespace: str, labels: Labels, owner_references: Owners, spec: PodSpec, size_bytes: int
    ) -> None:
        self.namespace = namespace
        self.labels = labels
        self.owner_references = owner_references
        self.spec = spec
        self.size_bytes = size_bytes
        self.has_ephemeral_claims = any(volume.get("ephemeral") is not None for volume in spec.volumes)
        """Whether claims bear the names of its pods, so that no two of them ask the same."""
        self.last_annotations: tuple[bytes, Labels] | None = None
        """How a pod of the template was annotated, as JSON and decoded; they are no part of the template."""
        self._derived: dict[Callable[[PodTemplate], Any], Any] = {}

    def derived(self, make: Callable[["PodTemplate"], T]) -> T:
        """What that function makes of the template, made once. For functions of modules, not for closures."""
        known: T = self._derived.get(make, _UNMADE)
        if known is _UNMADE:
            known = self._derived[make] = make(self)
        return known

    def derived_in_steps(self, make: Callable[["PodTemplate"], Steps[T]]) -> Steps[T]:
        """The same of a function that works in steps."""
        known: T = self._derived.get(make, _UNMADE)
        if known is _UNMADE:
            known = self._derived[make] = yield from make(self)
        return known

    def __repr__(self) -> str:
        return f"PodTemplate({self.namespace}, {self.labels})"


_interned: WeakValueDictionary[bytes, PodTemplate] = WeakValueDictionary()


def interned(namespace: str, labels: Labels, owner_references: Owners, spec: PodSpec) -> PodTemplate:
    """The template with these parts, the node's name apart.

    Cost: linear in the size of the parts.
    """
    spec = msgspec.structs.replace(spec, node_name="", volumes=_without_chance(spec.volumes))
    written = _encode((namespace, labels, owner_references, spec))
    key = blake2b(written, digest_size=32).digest()
    known = _interned.get(key)
    if known is None:
        known = _interned[key] = PodTemplate(namespace, labels, owner_references, spec, len(written))
    return known


def interned_count() -> int:
    """How many templates there are."""
    return len(_interned)


def _without_chance(volumes: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """The volumes, the token's under a name that all pods share: nothing reads that name."""
    return tuple(
        {**volume, "name": TOKEN_VOLUME}
        if volume.keys() == {"name", "projected"} and volume["name"].startswith(TOKEN_VOLUME + "-")
        else volume
        for volume in volumes
    )
