"""PodTopologySpread: keep the pods that a selector matches evenly spread over the values of a node label.

`constraints.py` prepares what a pod asks for, `filtering.py` counts for the hard constraints, `scoring.py`
for the soft ones, `hints.py` says what may help.

Source: pkg/scheduler/framework/plugins/podtopologyspread (Kubernetes v1.36).
"""

from berth.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
