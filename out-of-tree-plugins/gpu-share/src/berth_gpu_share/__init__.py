"""gpu-share: share GPUs between pods.

A pod asks for thousandths of GPUs; the plugin filters and scores nodes by what is left of each device, holds
devices for the pod at Reserve, and has them written to the pod at PreBind.
"""

from berth_gpu_share.plugin import DEFAULT_POLICY, POLICIES, GpuShare

__all__ = ["DEFAULT_POLICY", "POLICIES", "GpuShare"]
