"""One Event, two versions: core/v1, in which it is stored, and events.k8s.io/v1.

Source: pkg/apis/events/v1/conversion.go (v1.36).
"""

from typing import Final

from berth.sandbox.store import Json

# The name in the newer version, the name in the stored one.
_NAMES: Final = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_TO_CORE: Final = dict(_NAMES)
_FROM_CORE: Final = {core: new for new, core in _NAMES}
NEW_VERSION: Final = "events.k8s.io/v1"


def to_core(document: Json) -> Json:
    """Give an events.k8s.io/v1 Event as core/v1 has it."""
    converted = {_TO_CORE.get(key, key): value for key, value in document.items()}
    converted["apiVersion"] = "v1"
    converted.setdefault("involvedObject", {})
    converted.setdefault("source", {})
    converted.setdefault("reportingComponent", "")
    converted.setdefault("reportingInstance", "")
    return converted


def from_core(document: Json) -> Json:
    """Give a core/v1 Event as events.k8s.io/v1 has it."""
    converted = {_FROM_CORE.get(key, key): value for key, value in document.items()}
    converted["apiVersion"] = NEW_VERSION
    return converted
