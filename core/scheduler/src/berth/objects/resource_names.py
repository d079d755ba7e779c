"""Which resource names the scheduler accounts for, and how.

Source: pkg/scheduler/util, pkg/apis/core/v1/helper (Kubernetes v1.36).
"""

import re

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY_BYTES = 200 * 2**20

_ALWAYS = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_NATIVE_DOMAIN = "kubernetes.io/"


# `requests.` and the name are a qualified name: a DNS prefix, a slash, and up to 63 characters. Names are not
# remembered: a pod or a node may have more of them than a bounded cache holds.
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_EXTENDED = re.compile(
    rf"(?!requests\.)(?=[^/]{{1,244}}/){_LABEL}(?:\.{_LABEL})*/"
    r"(?:[A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]\Z"
)


def is_extended(name: str) -> bool:
    """Whether the name is a resource that only its device plugin knows, such as `example.com/gpu`."""
    return _NATIVE_DOMAIN not in name and _EXTENDED.match(name) is not None


def is_scalar(name: str) -> bool:
    """Whether the name is counted as a plain integer beside cpu, memory and ephemeral storage."""
    return (
        _NATIVE_DOMAIN in name
        or _EXTENDED.match(name) is not None
        or name.startswith(("hugepages-", "attachable-volumes-"))
    )


def is_accounted(name: str) -> bool:
    """Whether node accounting keeps the resource at all."""
    return name in _ALWAYS or is_scalar(name)


def is_pod_level(name: str) -> bool:
    """Whether a pod-level request may replace the sum over containers."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")
