"""Which resource names the scheduler accounts for, and how.

Source: pkg/scheduler/util, pkg/apis/core/v1/helper (Kubernetes v1.36).
"""

from functools import lru_cache

from berth.objects.label_selector import is_qualified_name

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY_BYTES = 200 * 2**20

_NATIVE_DOMAIN = "kubernetes.io/"


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """Whether the name is a resource that only its device plugin knows, such as `example.com/gpu`."""
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{name}")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether the name is counted as a plain integer beside cpu, memory and ephemeral storage."""
    return (
        is_extended(name) or name.startswith(("hugepages-", "attachable-volumes-")) or _NATIVE_DOMAIN in name
    )


def is_accounted(name: str) -> bool:
    """Whether node accounting keeps the resource at all."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


def is_pod_level(name: str) -> bool:
    """Whether a pod-level request may replace the sum over containers."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")
