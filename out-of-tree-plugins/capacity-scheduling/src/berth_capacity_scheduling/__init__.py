"""capacity-scheduling: share a cluster between namespaces.

An ElasticQuota guarantees a namespace what its `min` says and allows it up to its `max`; what one namespace
leaves of its min others may borrow, until it is wanted back.
"""

from berth_capacity_scheduling.plugin import CapacityScheduling

__all__ = ["CapacityScheduling"]
