"""fair-share: the namespace that has the least of the cluster is next.

A pod's place in the queue is the share that its namespace would have with it, so that namespaces take turns
however many pods one of them submits.
"""

from berth_fair_share.plugin import FairShare

__all__ = ["FairShare"]
