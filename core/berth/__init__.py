"""Berth: a kube-scheduler-compatible Kubernetes scheduler, extended by gRPC sidecars."""

from typing import Any


def __getattr__(name: str) -> Any:
    # Read where it is asked for: what reads it takes 30 ms of CPU to import, and most processes never ask.
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415 (see above)

    return version("berth-scheduler")
