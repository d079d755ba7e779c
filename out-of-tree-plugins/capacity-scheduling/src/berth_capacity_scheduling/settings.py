"""A profile's arguments."""

from dataclasses import dataclass
from typing import Any

from berth_sdk import ArgumentError

SYSTEM_CLUSTER_CRITICAL = 2_000_000_000
"""The priority from which on pods belong to the cluster itself."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reclaim": {"type": "boolean", "default": True},
        "sparedPriority": {"type": "integer", "default": SYSTEM_CLUSTER_CRITICAL},
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Whether borrowers are evicted, and from which priority on no pod is."""

    reclaim: bool = True
    spared_priority: int = SYSTEM_CLUSTER_CRITICAL


def settings_of(arguments: dict[str, Any]) -> Settings:
    """Return the settings.

    Raises: ArgumentError: with everything that is wrong.
    """
    errors = [f"{key}: unknown argument" for key in arguments if key not in SCHEMA["properties"]]
    reclaim = arguments.get("reclaim", True)
    spared = arguments.get("sparedPriority", SYSTEM_CLUSTER_CRITICAL)
    if not isinstance(reclaim, bool):
        errors.append(f"reclaim: {reclaim!r} is neither true nor false")
    if not isinstance(spared, int) or isinstance(spared, bool):
        errors.append(f"sparedPriority: {spared!r} is no whole number")
    if errors:
        raise ArgumentError(*errors)
    return Settings(reclaim, spared)
