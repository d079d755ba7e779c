"""NodeVolumeLimits: how many volumes of a CSI driver a node can have attached.

Source: pkg/scheduler/framework/plugins/nodevolumelimits (Kubernetes v1.36).
"""

from berth.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
