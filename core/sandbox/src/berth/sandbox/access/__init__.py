"""Who asks, and what they may do: bearer tokens, and the RBAC objects of the store.

    request ─▶ identity (whose token?) ─▶ rbac (a rule that allows it?) ─▶ answered, or 401, 403

Without `--authorization-mode=RBAC` every client may do everything: the sandbox listens on loopback only.
"""

from berth.sandbox.access.gate import EVERYBODY, AccessGate, RequestAccess

__all__ = ["EVERYBODY", "AccessGate", "RequestAccess"]
