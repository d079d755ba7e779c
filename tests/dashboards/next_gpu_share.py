"""A next gpu-share for the pictures, to stand in shadow: small shares keep off nodes of eight GPUs."""

import sys

import berth_sdk
from berth_gpu_share import DEFAULT_POLICY, GpuShare
from berth_gpu_share.contract import demand_of


class NextGpuShare(GpuShare):
    """The same plugin with one more rule, under a name of its own."""

    name = "gpu-share-next"

    def filter_nodes(self, pod, nodes):
        """The devices' verdicts, and no node of eight GPUs for less than one."""
        verdicts = super().filter_nodes(pod, nodes)
        demand = demand_of(pod)
        if demand is not None and demand.total < 1000:
            verdicts[(verdicts == 0) & (self.table.count == 8)] = 5
        return verdicts


if __name__ == "__main__":
    options = berth_sdk.flags("next-gpu-share", "Share GPUs between pods.").parse_args()
    sys.exit(berth_sdk.main(NextGpuShare(DEFAULT_POLICY, 0, None), options))
