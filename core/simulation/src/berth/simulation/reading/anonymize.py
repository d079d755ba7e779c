"""Anonymizes a cluster: names and other identifiers are replaced by keyed hashes, shapes stay.

Equal texts have equal hashes under one key, in all fields, so references stay valid. What is
not listed here as a shape is hashed: a field that this module does not know discloses nothing.

    names, namespaces, UIDs, images, label values ---> hash
    keys of labels and taints -----------------------> kept where they are well known, else hash
    amounts, numbers, enumerations, resources, drivers, devices' attributes, CEL -> kept
"""

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final

from berth.objects.volumes.storage import MIGRATED_PLUGINS

Document = dict[str, Any]

DIGEST_BYTES: Final = 8
PLAIN: Final = re.compile(r"-?[0-9]{1,18}|true|false|", re.ASCII)
"""Numbers and truth values say how much, not who; Gt and Lt compare them."""

KEPT_TEXTS: Final = frozenset(
    {
        *("default", "kube-system", "kube-public", "kube-node-lease"),
        *("system-cluster-critical", "system-node-critical"),
    }
)
WELL_KNOWN: Final = re.compile(r"([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io|berth\.dev)/.+", re.ASCII)
"""Keys of labels, taints and annotations that say something to plugins."""
KEPT_VALUES_OF: Final = frozenset(
    {
        *("kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type"),
        *("beta.kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/instance-type"),
    }
)
KEPT_ANNOTATION_DOMAINS: Final = ("pv.kubernetes.io/", "volume.", "storage.alpha.", "scheduling.k8s.io/")
OWN_DOMAIN: Final = "berth.dev/"

KEPT: Final = frozenset(
    {
        *("apiVersion", "kind", "apiGroup", "resource", "resourceVersion", "operator", "effect", "phase"),
        *("status", "type", "reason", "whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy"),
        *("schedulerName", "preemptionPolicy", "preemptionMode", "restartPolicy", "protocol", "hostIP"),
        *("volumeBindingMode", "volumeMode", "accessModes", "allocationMode", "driver", "provisioner"),
        *("expression", "matchAttribute", "distinctAttribute", "attributes", "capacity", "allocatable"),
        *("requests", "limits", "allocatedResources", "overhead", "declaredFeatures", "source"),
        *("creationTimestamp", "deletionTimestamp", "startTime", "lastTransitionTime", "timeAdded"),
        *("lastProbeTime", "allocationTimestamp", "maximumVolumeSize", "consumesCounters", "sharedCounters"),
        *("consumedCapacity", "allocatableCount", "extendedResourceName", "resourceName", "storage"),
    }
)
"""Fields whose whole value stays."""
LABELS: Final = frozenset({"labels", "matchLabels", "nodeSelector", "selector"})
KEYS: Final = frozenset({"topologyKey", "matchLabelKeys", "mismatchLabelKeys"})
ZONES_APART: Final = "__"
DROPPED: Final = frozenset({"message", "managedFields", "data", "networkData", "opaque", "parameters"})
DRIVER_KINDS: Final = frozenset({"CSIDriver"})
"""Their names are those of drivers, which other objects call by."""


class Anonymizer:
    """Replaces identifiers; the same key gives the same hashes."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key).digest()

    def document(self, document: Document) -> Document:
        """The object with hashed identifiers."""
        made: Document = {name: self._field(name, value) for name, value in document.items()}
        kind = document.get("kind", "")
        if kind in DRIVER_KINDS:
            made["metadata"]["name"] = document["metadata"]["name"]
        if kind == "CSINode":
            for driver, old in zip(made["spec"]["drivers"], document["spec"]["drivers"], strict=True):
                driver["name"] = old["name"]
                driver["topologyKeys"] = [self.key_of(key) for key in old.get("topologyKeys") or ()]
        return made

    def hash(self, text: str) -> str:
        """The text's hash: a valid name, label value and key. Well-known texts stay."""
        if text in KEPT_TEXTS or PLAIN.fullmatch(text):
            return text
        return "a" + blake2b(text.encode(), key=self._key, digest_size=DIGEST_BYTES).hexdigest()

    def key_of(self, key: str) -> str:
        """A key of labels or taints."""
        return key if WELL_KNOWN.fullmatch(key) or key == "metadata.name" else self.hash(key)

    def image(self, name: str) -> str:
        """An image by the name that kube-scheduler compares: without a tag it is the latest."""
        whole = name if ":" in name[name.rfind("/") + 1 :] else f"{name}:latest"
        return f"{self.hash(whole)}:a"

    def _field(self, name: str, value: Any) -> Any:
        special: Mapping[str, Callable[[Any], Any]] = {
            "annotations": self._annotations,
            "image": self.image,
            "images": self._images,
            "request": self._request,
            "tolerations": lambda items: [self._tainted(each) for each in items],
            "taints": lambda items: [self._tainted(each) for each in items],
        }
        if name in special:
            return special[name](value)
        if name in KEPT and not isinstance(value, dict):
            return value
        if name in LABELS and _is_text_map(value):
            return {self.key_of(key): self._label(key, text) for key, text in value.items()}
        if name in KEYS:
            return [self.key_of(key) for key in value] if isinstance(value, list) else self.key_of(value)
        if name in {"status", "source", "resource"} or name not in KEPT:
            return self._value(value)
        return value

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hash(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() >= {"key", "operator"} or value.keys() == {"key", "values"}:
            return self._requirement(value)
        return {name: self._field(name, held) for name, held in value.items() if name not in DROPPED}

    def _requirement(self, requirement: Document) -> Document:
        key = requirement["key"]
        made = {**requirement, "key": self.key_of(key)}
        if requirement.get("values"):
            made["values"] = [self._label(key, text) for text in requirement["values"]]
        return made

    def _label(self, key: str, text: str) -> str:
        if ZONES_APART in text:
            # A volume that reaches several zones names them in one value.
            return ZONES_APART.join(self.hash(zone) for zone in text.split(ZONES_APART))
        return text if key in KEPT_VALUES_OF or OWN_DOMAIN in key else self.hash(text)

    def _tainted(self, taint: Document) -> Document:
        made = dict(taint)
        if taint.get("key"):
            made["key"] = self.key_of(taint["key"])
        if taint.get("value"):
            made["value"] = self._label(taint.get("key", ""), taint["value"])
        return made

    def _annotations(self, annotations: Document) -> Document:
        return {
            key: text if OWN_DOMAIN in key or key == MIGRATED_PLUGINS else self.hash(text)
            for key, text in annotations.items()
            if OWN_DOMAIN in key or key.startswith(KEPT_ANNOTATION_DOMAINS)
        }

    def _images(self, images: list[Document]) -> list[Document]:
        return [{**each, "names": [self.image(name) for name in each.get("names") or ()]} for each in images]

    def _request(self, request: str) -> str:
        """A request of a claim, and perhaps one of its alternatives."""
        return "/".join(self.hash(part) for part in request.split("/"))


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
