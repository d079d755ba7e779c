"""The client side of kube-scheduler's HTTP extender protocol.

    core (evaluation/points/extending.py) -> HttpExtender ──────┐
    the plugin http-extender, in a process of its own ───┴─> ExtenderClient -> aiohttp -> the webhook
                 both: wire.py: bodies and replies; tls.py: whom to trust

Pods and nodes are sent as the API server wrote them, so that an extender sees every field: while there is an
extender that wants objects, their bytes are kept (RawObjects).

Source: pkg/scheduler/extender.go HTTPExtender (Kubernetes v1.36).
"""

from berth.out_of_tree.extender.client import ExtenderClient
from berth.out_of_tree.extender.errors import (
    ExtenderError,
    NotAskedError,
    ReplyError,
    StatusError,
    UnansweredError,
)
from berth.out_of_tree.extender.http_extender import ExtenderContext, HttpExtender, HttpExtenders

__all__ = [
    "ExtenderClient",
    "ExtenderContext",
    "ExtenderError",
    "HttpExtender",
    "HttpExtenders",
    "NotAskedError",
    "ReplyError",
    "StatusError",
    "UnansweredError",
]
